// The administration of @confluentinc/kafka-javascript, by its API of callbacks;
// the one of promises is built on it and has no more.
import { Skip } from '../jskit/kit.mjs'
import { call, library, offsetsOf, settings, usingConsumer } from './client.mjs'

const timeout = 5000

export class Admin {
  constructor(token) {
    this.token = token
    this.client = library.AdminClient.create(settings(token))
  }

  createTopic(topic, partitions, config) {
    return call(this.client, 'createTopic', { topic, num_partitions: partitions, replication_factor: 1, config }, timeout)
  }

  topics() {
    return call(this.client, 'listTopics', { timeout })
  }

  async partitions(topic) {
    return only(await call(this.client, 'describeTopics', [topic], { timeout })).partitions.length
  }

  addPartitions(topic, total) {
    return call(this.client, 'createPartitions', topic, total, timeout)
  }

  deleteTopic(topic) {
    return call(this.client, 'deleteTopic', topic, timeout)
  }

  async configs() {
    throw new Skip('its administration neither describes nor alters configs')
  }

  async groups() {
    const { groups, errors } = await call(this.client, 'listGroups', { timeout })
    if (errors.length > 0) throw errors[0]
    return groups.map(g => g.groupId)
  }

  async members(group, topic) {
    const { groups } = await call(this.client, 'describeGroups', [group], { timeout })
    return only(groups).members.map(m => partitionsOf(topic, m.assignment.topicPartitions).map(p => p.partition))
  }

  async offsets(groupId, topic) {
    const listed = only(await call(this.client, 'listConsumerGroupOffsets', [{ groupId }], { timeout }))
    return Object.fromEntries(partitionsOf(topic, listed.partitions).map(p => [p.partition, p.offset]))
  }

  // Only a consumer of the group can.
  setOffsets(group, topic, offsets) {
    return usingConsumer(this.token, group, consumer => call(consumer, 'commitCb', offsetsOf(topic, offsets)))
  }

  async deleteGroup(group) {
    only(await call(this.client, 'deleteGroups', [group], { timeout }))
  }

  close() {
    this.client.disconnect()
  }
}

// What is asked of several is asked of one here; a refusal is in its answer.
function only([answer]) {
  if (answer.error) throw answer.error
  return answer
}

function partitionsOf(topic, partitions) {
  const refused = partitions.find(p => p.error)
  if (refused) throw refused.error
  return partitions.filter(p => p.topic === topic)
}
