// The transactions of @confluentinc/kafka-javascript.
import { call, deliver, makeProducer, offsetsOf, usingConsumer } from './client.mjs'

const timeout = 5000

export async function transactional(token, id) {
  const producer = makeProducer(token, { 'transactional.id': id })
  await call(producer, 'connect', { timeout })
  await call(producer, 'initTransactions', timeout)
  return {
    begin: () => call(producer, 'beginTransaction'),
    produce: (topic, records) => deliver(producer, topic, records),
    // Only a consumer of the group has its metadata; nobody joins the group by it.
    offsets: (group, topic, offsets) => usingConsumer(token, group, consumer =>
      call(producer, 'sendOffsetsToTransaction', offsetsOf(topic, offsets), consumer, timeout)),
    commit: () => call(producer, 'commitTransaction', timeout),
    abort: () => call(producer, 'abortTransaction', timeout),
    close: () => call(producer, 'disconnect'),
  }
}
