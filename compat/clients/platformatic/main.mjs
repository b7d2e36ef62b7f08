// @platformatic/kafka as a client under test.
import fs from 'node:fs'
import { pathToFileURL } from 'node:url'
import { Member } from '../jskit/groups.mjs'
import { batches, bootstrap, installed, run, shown, version } from '../jskit/kit.mjs'
import { Administration } from './admin.mjs'

const require = installed('platformatic')
const { Admin, ConfigResourceTypes, Consumer, IncrementalAlterConfigOperationTypes, Producer } = await import(pathToFileURL(require.resolve('@platformatic/kafka')))

const options = token => ({
  clientId: 'platformatic',
  bootstrapBrokers: [bootstrap],
  tls: { ca: [fs.readFileSync(process.env.QUEEN_EDGE_CA)] },
  tlsServerName: process.env.QUEEN_EDGE_SNI,
  sasl: { mechanism: 'PLAIN', username: 'platformatic', password: token },
  connectTimeout: 5000,
  requestTimeout: 10_000,
  retries: 3,
  retryDelay: 100,
})

async function using(client, does) {
  client.on('error', e => process.stderr.write(shown(e) + '\n'))
  try {
    return await does(client)
  } finally {
    await client.close()
  }
}

const withAdmin = (token, does) => using(new Admin(options(token)), does)

// It joins a group only to stream. fetch and listOffsets do not need one.
const withConsumer = (token, does) => using(new Consumer({ ...options(token), groupId: 'none' }), does)

const driver = {
  brokers: token => withAdmin(token, async admin => {
    const { brokers } = await admin.metadata({ topics: [] })
    return [...brokers.values()].map(b => `${b.host}:${b.port}`)
  }),

  async refused(token) {
    const said = await withAdmin(token, admin => admin.metadata({ topics: [] }).then(() => null, shown))
    if (said === null) throw new Error('the login succeeded')
    return said
  },

  async produce(token, topic, how, records) {
    const settings = { ...options(token), idempotent: how.idempotent, acks: -1, compression: how.codec, autocreateTopics: true }
    await using(new Producer(settings), async producer => {
      const messages = records.map(r => message(topic, r))
      // Times more than 24 days apart in one batch come out wrong: it writes the difference as 32 bits.
      const sends = records.some(r => r.time !== undefined) ? messages.map(m => [m]) : batches(messages)
      for (const send of sends) await producer.send({ messages: send })
    })
  },

  read: (token, topic, count, offsets) => withConsumer(token, async consumer => {
    consumer.topics.track(topic)
    const out = []
    for (const offset of offsets) out.push(...await readFrom(consumer, topic, count, BigInt(offset)))
    return out
  }),

  offsetAt: (token, topic, at) => listed(token, topic, BigInt(at)),
  end: (token, topic) => listed(token, topic, -1n),
  topics: token => withAdmin(token, admin => admin.listTopics()),

  closeLeaves: true,
  admin: token => new Administration(new Admin(options(token)), { ConfigResourceTypes, IncrementalAlterConfigOperationTypes }),

  transactional(token, transactionalId) {
    const producer = new Producer({
      ...options(token), transactionalId, idempotent: true, acks: -1, autocreateTopics: true,
      producerId: -1n, producerEpoch: -1, // by itself it asks as producer 0, which is fenced where the id is known
    })
    producer.on('error', e => process.stderr.write(shown(e) + '\n'))
    let transaction
    return {
      begin: async () => { transaction = await producer.beginTransaction() },
      produce: (topic, records) => transaction.send({ messages: records.map(r => message(topic, r)) }),
      // It commits the offset behind a message that a member was given: one of nobody, here.
      async offsets(groupId, topic, offsets) {
        await transaction.addConsumer({ groupId })
        const consumer = { groupId, generationId: -1, memberId: '', coordinatorId: 0 }
        for (const [partition, offset] of Object.entries(offsets)) {
          await transaction.addOffset({ topic, partition: Number(partition), offset: BigInt(offset) - 1n, metadata: { consumer } })
        }
      },
      commit: () => transaction.commit(),
      abort: () => transaction.abort(),
      close: () => producer.close(),
    }
  },

  member: (token, group, topic, how) => new Streaming(token, group, topic, how),
}

class Streaming extends Member {
  constructor(token, group, topic, { instance, cooperative, sessionTimeout }) {
    super()
    this.topic = topic
    this.consumer = new Consumer({
      ...options(token),
      groupId: group,
      ...(instance && { groupInstanceId: instance }),
      ...(cooperative && { protocols: [{ name: 'cooperative-sticky', version: 1 }] }),
      sessionTimeout,
      rebalanceTimeout: sessionTimeout,
      heartbeatInterval: 200,
      maxWaitTime: 100,
      autocommit: false,
    })
    const partitions = () => this.consumer.assignments?.flatMap(a => a.partitions) ?? []
    this.consumer.on('consumer:group:rebalance', () => {
      const kept = cooperative ? partitions() : []
      this.taken([...this.held].filter(p => !kept.includes(p)))
    })
    this.consumer.on('consumer:group:join', () => {
      this.taken()
      this.given(partitions())
    })
    this.consumer.on('error', e => this.failed(e))
  }

  async start() {
    const stream = await this.consumer.consume({ topics: [this.topic], mode: 'committed', fallbackMode: 'earliest' })
    stream.on('data', m => this.saw(m.partition, Number(m.offset)))
    stream.on('error', e => this.failed(e))
  }

  commit() {
    const offsets = [...this.next].map(([partition, offset]) => ({ topic: this.topic, partition, offset: BigInt(offset), leaderEpoch: -1 }))
    return this.consumer.commit({ offsets })
  }

  close() {
    return this.consumer.close(true)
  }
}

async function listed(token, topic, timestamp) {
  const all = await withConsumer(token, c => c.listOffsets({ topics: [topic], partitions: { [topic]: [0] }, timestamp }))
  return Number(all.get(topic)[0])
}

async function readFrom(consumer, topic, count, offset) {
  const metadata = await consumer.metadata({ topics: [topic] })
  const { id, partitions } = metadata.topics.get(topic)
  const out = []
  while (out.length < count) {
    const partition = {
      partition: 0, fetchOffset: offset + BigInt(out.length), currentLeaderEpoch: -1, lastFetchedEpoch: -1, partitionMaxBytes: 1 << 20,
    }
    const response = await consumer.fetch({
      node: partitions[0].leader, topics: [{ topicId: id, partitions: [partition] }], maxWaitTime: 500, minBytes: 1, maxBytes: 4 << 20,
    })
    for (const batch of response.responses[0]?.partitions[0].records ?? []) {
      const wanted = batch.records.map(r => record(batch, r)).filter(r => r.offset >= partition.fetchOffset)
      out.push(...wanted)
    }
  }
  return out.slice(0, count)
}

const record = (batch, r) => ({
  offset: batch.firstOffset + BigInt(r.offsetDelta),
  key: r.key,
  value: r.value,
  time: batch.firstTimestamp + r.timestampDelta,
  headers: r.headers.map(([name, value]) => ({ name, value })),
})

// The names of headers are Buffers in a Map, so that a name may come twice.
const message = (topic, { key, value, time, headers }) => ({
  topic,
  partition: 0,
  key,
  value,
  timestamp: time === undefined ? undefined : BigInt(time),
  headers: new Map(headers.map(h => [Buffer.from(h.name), h.value])),
})

await run({
  name: 'platformatic',
  version: version('platformatic', '@platformatic/kafka'),
  driver,
  cannot: {
    balance: 'cooperative-sticky moves partitions to a member with fewer than the mean, rounded down, only from one with more than it, rounded up',
  },
})
