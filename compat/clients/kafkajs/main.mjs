// kafkajs as a client under test.
import fs from 'node:fs'
import { Member } from '../jskit/groups.mjs'
import { Admin } from './admin.mjs'
import { Skip, batches, bootstrap, installed, run, shown, version } from '../jskit/kit.mjs'

const require = installed('kafkajs')
const { AssignerProtocol, CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = new (require('kafkajs-lz4'))().codec

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
}
let groups = 0 // that were made to read

function kafka(token, log) {
  return new Kafka({
    clientId: 'kafkajs',
    brokers: [bootstrap],
    ssl: { ca: [fs.readFileSync(process.env.QUEEN_EDGE_CA)], servername: process.env.QUEEN_EDGE_SNI },
    sasl: { mechanism: 'plain', username: 'kafkajs', password: token },
    connectionTimeout: 5000,
    requestTimeout: 10_000,
    retry: { retries: 3, maxRetryTime: 2000 },
    logLevel: logLevel.ERROR,
    logCreator: () => entry => (log ?? toStderr)(`${entry.log.message} ${entry.log.error ?? ''}`),
  })
}

const toStderr = line => process.stderr.write(line + '\n')

async function withAdmin(token, does) {
  const admin = kafka(token).admin()
  try {
    await admin.connect()
    return await does(admin)
  } finally {
    await admin.disconnect()
  }
}

const driver = {
  brokers: token => withAdmin(token, async admin =>
    (await admin.describeCluster()).brokers.map(b => `${b.host}:${b.port}`)),

  async refused(token) {
    const lines = []
    const producer = kafka(token, line => lines.push(line)).producer()
    const said = await producer.connect().then(() => null, shown)
    await producer.disconnect()
    if (said === null) throw new Error('the login succeeded')
    return [...lines, said].join(' ')
  },

  async produce(token, topic, how, records) {
    if (!(how.codec in codecs)) throw new Skip(`kafkajs has no ${how.codec}, and its codec package @kafkajs/zstd does not build`)
    const producer = kafka(token).producer({ idempotent: how.idempotent, maxInFlightRequests: 1, allowAutoTopicCreation: true })
    try {
      await producer.connect()
      for (const messages of batches(records.map(message))) {
        await producer.send({ topic, acks: -1, compression: codecs[how.codec], messages })
      }
    } finally {
      await producer.disconnect()
    }
  },

  // It reads only as a member of a group: one of its own for every call.
  async read(token, topic, count, offsets) {
    const lines = []
    const consumer = kafka(token, line => lines.push(line)).consumer({
      groupId: `${process.env.COMPAT_RUN}-kafkajs-read-${++groups}`, maxWaitTimeInMs: 100,
    })
    try {
      return await readFrom(consumer, topic, count, offsets)
    } catch (e) {
      throw new Error([...lines, shown(e)].join(' '), { cause: e }) // the reason is in its log
    } finally {
      await consumer.disconnect()
    }
  },

  end: (token, topic) => withAdmin(token, async admin =>
    Number((await admin.fetchTopicOffsets(topic)).find(o => o.partition === 0).high)),
  offsetAt: (token, topic, at) => withAdmin(token, async admin => {
    const offsets = await admin.fetchTopicOffsetsByTimestamp(topic, at)
    return Number(offsets.find(o => o.partition === 0).offset)
  }),
  topics: token => withAdmin(token, admin => admin.listTopics()),

  member(token, group, topic, { instance, cooperative, sessionTimeout }) {
    if (instance) throw new Skip('kafkajs has no static members')
    if (cooperative) throw new Skip('kafkajs has no cooperative assignor')
    return new KafkaJSMember(token, group, topic, sessionTimeout)
  },

  async admin(token) {
    const client = kafka(token).admin()
    await client.connect()
    return new Admin(client, { AssignerProtocol, ConfigResourceTypes })
  },

  async transactional(token, transactionalId) {
    const producer = kafka(token).producer({
      transactionalId, idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: true,
    })
    await producer.connect()
    let transaction
    return {
      begin: async () => { transaction = await producer.transaction() },
      produce: (topic, records) => transaction.send({ topic, acks: -1, messages: records.map(message) }),
      offsets: (consumerGroupId, topic, offsets) => {
        const partitions = Object.entries(offsets).map(([p, offset]) => ({ partition: Number(p), offset: String(offset) }))
        return transaction.sendOffsets({ consumerGroupId, topics: [{ topic, partitions }] })
      },
      commit: () => transaction.commit(),
      abort: () => transaction.abort(),
      close: () => producer.disconnect(),
    }
  },
}

async function readFrom(consumer, topic, count, offsets) {
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const crashed = new Promise((_, reject) => consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error)))
  crashed.catch(() => {}) // it may come before anyone waits
  const joined = new Promise(resolve => consumer.on(consumer.events.GROUP_JOIN, resolve))
  const out = []
  let from, full // where the next record is wanted, and what is called when there are enough
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (partition !== 0 || Number(message.offset) !== from) return
      out.push(record(message))
      from++
      if (out.length % count === 0) full()
    },
  })
  await Promise.race([joined, crashed])
  for (const offset of offsets) {
    const enough = new Promise(resolve => { full = resolve })
    from = offset
    consumer.seek({ topic, partition: 0, offset: offset.toString() })
    await Promise.race([enough, crashed])
    from = undefined
  }
  return out
}

// A name that comes twice has its values in one list, so that the order is lost.
const record = ({ offset, key, value, timestamp, headers }) => ({
  offset,
  key,
  value,
  time: timestamp,
  headers: Object.values(headers).some(Array.isArray) ? null : Object.entries(headers).map(([name, value]) => ({ name, value })),
})

class KafkaJSMember extends Member {
  constructor(token, group, topic, sessionTimeout) {
    super()
    this.topic = topic
    this.consumer = kafka(token).consumer({ groupId: group, sessionTimeout, heartbeatInterval: 200, maxWaitTimeInMs: 100 })
    const { GROUP_JOIN, REBALANCING, CRASH } = this.consumer.events
    this.consumer.on(REBALANCING, () => this.taken())
    this.consumer.on(GROUP_JOIN, ({ payload }) => {
      this.taken() // a member that was forgotten joins without rebalancing
      this.given(payload.memberAssignment[topic] ?? [])
    })
    this.consumer.on(CRASH, ({ payload }) => this.failed(payload.error))
  }

  async start() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topic: this.topic, fromBeginning: true })
    await this.consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => this.saw(partition, Number(message.offset)),
    })
  }

  commit() {
    return this.consumer.commitOffsets([...this.next].map(([partition, offset]) =>
      ({ topic: this.topic, partition, offset: offset.toString() })))
  }

  close() {
    return this.consumer.disconnect()
  }
}

function message({ key, value, time, headers }) {
  const byName = {}
  for (const h of headers) {
    byName[h.name] = h.name in byName ? [byName[h.name], h.value].flat() : h.value
  }
  return { key, value, headers: byName, partition: 0, timestamp: time?.toString() }
}

await run({
  name: 'kafkajs',
  version: version('kafkajs', 'kafkajs'),
  driver,
  cannot: {
    'said.admin-configs': 'it shows the code of a refusal, and drops the sentence',
    'delete.admin-groups': 'its administration deletes groups, not single offsets',
    'h-duplicates': 'headers are an object: values of a name that comes twice stand together',
    'h-many': 'headers are an object: values of a name that comes twice stand together',
    'read.headers': 'headers are an object: values of a name that comes twice stand together',
    'h-null': 'a header that is null throws: it takes its byteLength',
    'h-null-and-empty': 'a header that is null throws: it takes its byteLength',
  },
})
