// What every client of the library is given, whatever it is for.
import { Skip, bootstrap, installed } from '../jskit/kit.mjs'
import { within } from '../jskit/time.mjs'

export const library = installed('confluent-kafka-javascript')('@confluentinc/kafka-javascript')

export const deadline = 10_000

export const settings = token => ({
  'bootstrap.servers': bootstrap,
  'security.protocol': 'sasl_ssl',
  'ssl.ca.location': process.env.QUEEN_EDGE_CA,
  'sasl.mechanism': 'PLAIN',
  'sasl.username': 'confluent-kafka-javascript',
  'sasl.password': token,
  event_cb: true,
})

// call is the promise of what a method hands to its callback.
export const call = (object, method, ...args) => within(deadline, new Promise((resolve, reject) => {
  object[method](...args, (error, result) => error ? reject(error) : resolve(result))
}), method)

// using connects a client, lets does work with it and with what it logs, and
// disconnects it. An error has what was logged with it.
export async function using(client, does) {
  const log = []
  client.on('event.log', e => log.push(e.message))
  client.on('event.error', e => log.push(e.message))
  try {
    const metadata = await call(client, 'connect', { timeout: 5000 })
    return await does(client, { log, metadata })
  } catch (e) {
    if (e instanceof Skip) throw e
    throw new Error([e.message, ...new Set(log)].join(' | '), { cause: e })
  } finally {
    await call(client, 'disconnect')
  }
}

// usingConsumer is for one that joins no group: what it does not subscribe to it
// assigns itself, and what it commits it commits for a group without members.
export function usingConsumer(token, group, does) {
  const consumer = new library.KafkaConsumer({
    ...settings(token),
    'group.id': group,
    'enable.auto.commit': false,
    'fetch.wait.max.ms': 100,
  }, { 'auto.offset.reset': 'error' })
  consumer.setDefaultConsumeTimeout(500)
  return using(consumer, does)
}

export const offsetsOf = (topic, offsets) =>
  Object.entries(offsets).map(([partition, offset]) => ({ topic, partition: Number(partition), offset }))

// makeProducer is one that reports deliveries, which deliver waits for.
export function makeProducer(token, more) {
  const producer = new library.Producer({ ...settings(token), dr_cb: true, 'linger.ms': 20, ...more }, { acks: -1 })
  producer.on('ready', () => producer.setPollInterval(10))
  return producer
}

// deliver produces records to partition 0, in order.
export async function deliver(producer, topic, records) {
  let reported
  const delivered = new Promise((resolve, reject) => {
    let left = records.length
    reported = error => {
      left--
      if (error) reject(error)
      else if (left === 0) resolve()
    }
  })
  producer.on('delivery-report', reported)
  try {
    for (const r of records) {
      producer.produce(topic, 0, sent(r.value), sent(r.key), r.time, undefined, r.headers.map(h => ({ [h.name]: sent(h.value) })))
    }
    await within(deadline, delivered, 'delivery')
  } finally {
    producer.off('delivery-report', reported)
  }
}

// An empty Buffer that owns no memory, as Buffer.from('') makes it, would go
// out as null. An empty part of another does not.
const empty = Buffer.from('x').subarray(0, 0)
const sent = value => value?.length === 0 ? empty : value
