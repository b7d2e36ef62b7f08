// @confluentinc/kafka-javascript as a client under test, by its API of callbacks: the one that reads without a group.
import { Member } from '../jskit/groups.mjs'
import { Skip, run, version } from '../jskit/kit.mjs'
import { Admin } from './admin.mjs'
import { call, deadline, deliver, library, makeProducer, offsetsOf, settings, using, usingConsumer } from './client.mjs'
import { transactional } from './transactions.mjs'

// It is asked for, and no group of this name comes to be.
const withConsumer = (token, does) => usingConsumer(token, 'none', does)

const driver = {
  brokers: token => withConsumer(token, async (_, { metadata }) => metadata.brokers.map(b => `${b.host}:${b.port}`)),

  async refused(token) {
    const said = await withConsumer(token, async () => null).catch(e => e.message)
    if (said === null) throw new Error('the login succeeded')
    return said
  },

  produce(token, topic, how, records) {
    const producer = makeProducer(token, { 'compression.codec': how.codec, 'enable.idempotence': how.idempotent })
    return using(producer, async (_, { log }) => {
      await deliver(producer, topic, records)
      const declined = log.find(line => line.includes('does not support compression'))
      if (declined) throw new Skip(`it compresses with ${how.codec} for brokers of Fetch 10 and later only: ${declined}`)
    })
  },

  read: (token, topic, count, offsets) => withConsumer(token, async consumer => {
    const out = []
    for (const [i, offset] of offsets.entries()) {
      const from = { topic, partition: 0, offset }
      if (i === 0) consumer.assign([from])
      else await call(consumer, 'seek', from, 5000)
      for (const end = Date.now() + deadline; out.length < (i + 1) * count;) {
        if (Date.now() > end) throw new Error(`${out.length} records after ${deadline} ms`)
        const messages = await call(consumer, 'consume', (i + 1) * count - out.length)
        out.push(...messages.map(record))
      }
    }
    return out
  }),

  offsetAt: (token, topic, at) => withConsumer(token, async consumer => {
    const found = await call(consumer, 'offsetsForTimes', [{ topic, partition: 0, offset: at }], 5000)
    return found[0].offset
  }),

  end: (token, topic) => withConsumer(token, async consumer =>
    (await call(consumer, 'queryWatermarkOffsets', topic, 0, 5000)).highOffset),

  topics: token => withConsumer(token, async consumer =>
    (await call(consumer, 'getMetadata', { allTopics: true, timeout: 5000 })).topics.map(t => t.name)),

  member: (token, group, topic, how) => new Polled(token, group, topic, how),
  admin: token => new Admin(token),
  transactional,
}

const foreignEpoch = 7 // a leader epoch that another cluster may have given: here it must not matter
const assigned = -175, revoked = -174 // the codes of a rebalance

class Polled extends Member {
  constructor(token, group, topic, { instance, cooperative, sessionTimeout }) {
    super()
    this.topic = topic
    this.consumer = new library.KafkaConsumer({
      ...settings(token),
      'group.id': group,
      ...(instance && { 'group.instance.id': instance }),
      'partition.assignment.strategy': cooperative ? 'cooperative-sticky' : 'range',
      'enable.auto.commit': false,
      'session.timeout.ms': sessionTimeout,
      'heartbeat.interval.ms': 200,
      'fetch.wait.max.ms': 100,
      rebalance_cb: true,
    }, { 'auto.offset.reset': 'earliest' })
    this.consumer.setDefaultConsumeTimeout(100)
    this.consumer.on('rebalance', ({ code }, partitions) => {
      const numbers = partitions.map(p => p.partition)
      if (code === assigned) this.given(numbers)
      if (code === revoked) this.taken(numbers)
    })
    this.consumer.on('rebalance.error', e => this.failed(e))
  }

  async start() {
    await call(this.consumer, 'connect', { timeout: 5000 })
    this.consumer.subscribe([this.topic])
    this.polling = this.poll()
  }

  async poll() {
    try {
      while (!this.closing) {
        for (const m of await call(this.consumer, 'consume', 5)) this.saw(m.partition, m.offset)
      }
    } catch (e) {
      this.failed(e)
    }
  }

  commit() {
    const offsets = offsetsOf(this.topic, Object.fromEntries(this.next))
    return call(this.consumer, 'commitCb', offsets.map(o => ({ ...o, leaderEpoch: foreignEpoch })))
  }

  async close() {
    this.closing = true
    await this.polling
    await call(this.consumer, 'disconnect')
  }
}

const record = m => ({
  offset: m.offset,
  key: m.key,
  value: m.value,
  time: m.timestamp,
  headers: (m.headers ?? []).map(h => {
    const [[name, value]] = Object.entries(h)
    return { name, value }
  }),
})

await run({
  name: 'confluent-kafka-javascript',
  version: version('confluent-kafka-javascript', '@confluentinc/kafka-javascript'),
  driver,
  cannot: {
    'delete.admin-groups': 'its administration deletes groups, not single offsets',
    'h-null': 'the value of a header has to be a string or a Buffer',
    'h-null-and-empty': 'the value of a header has to be a string or a Buffer',
    't-0': 'it takes a timestamp of 0 for none, and sends the time of sending',
    'read.null': 'it shows a header without a value as an empty one',
  },
})
