// kafkajs as a client under test.
import fs from 'node:fs'
import { Skip, batches, bootstrap, installed, run, shown, version } from '../jskit/kit.mjs'

const require = installed('kafkajs')
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = new (require('kafkajs-lz4'))().codec

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
}
const groupsOnly = 'reads only as a member of a consumer group, which this folder does not drive yet'

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
  groupsOnly: true,

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

  async read() { throw new Skip(groupsOnly) },
  offsetAt: (token, topic, at) => withAdmin(token, async admin => {
    const offsets = await admin.fetchTopicOffsetsByTimestamp(topic, at)
    return Number(offsets.find(o => o.partition === 0).offset)
  }),
  topics: token => withAdmin(token, admin => admin.listTopics()),
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
    'h-duplicates': 'headers are an object: values of a name that comes twice stand together',
    'h-many': 'headers are an object: values of a name that comes twice stand together',
    'h-null': 'a header that is null throws: it takes its byteLength',
    'h-null-and-empty': 'a header that is null throws: it takes its byteLength',
  },
})
