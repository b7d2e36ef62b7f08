// The administration of @platformatic/kafka.
export class Administration {
  constructor(client, { ConfigResourceTypes, IncrementalAlterConfigOperationTypes }) {
    this.client = client
    this.ofTopic = resourceName => ({ resourceType: ConfigResourceTypes.TOPIC, resourceName })
    this.set = IncrementalAlterConfigOperationTypes.SET
  }

  createTopic(topic, partitions, configs) {
    const list = Object.entries(configs).map(([name, value]) => ({ name, value }))
    return this.client.createTopics({ topics: [topic], partitions, replicas: 1, configs: list })
  }

  topics() {
    return this.client.listTopics()
  }

  // Metadata is kept for a while unless it is forced.
  async partitions(topic) {
    const { topics } = await this.client.metadata({ topics: [topic], forceUpdate: true })
    return topics.get(topic).partitionsCount
  }

  addPartitions(name, count) {
    return this.client.createPartitions({ topics: [{ name, count }] })
  }

  deleteTopic(topic) {
    return this.client.deleteTopics({ topics: [topic] })
  }

  async configs(topic) {
    const [{ configs }] = await this.client.describeConfigs({ resources: [this.ofTopic(topic)] })
    return Object.fromEntries(configs.map(c => [c.name, c.value]))
  }

  setConfig(topic, name, value) {
    const resource = { ...this.ofTopic(topic), configs: [{ name, value, configOperation: this.set }] }
    return this.client.incrementalAlterConfigs({ resources: [resource] })
  }

  async groups() {
    return [...(await this.client.listGroups()).keys()]
  }

  async members(group, topic) {
    const described = (await this.client.describeGroups({ groups: [group] })).get(group)
    return [...described.members.values()].map(m => m.assignments?.get(topic)?.partitions ?? [])
  }

  async offsets(group, topic) {
    const [{ topics }] = await this.client.listConsumerGroupOffsets({ groups: [group] })
    const of = topics.find(t => t.name === topic)
    return Object.fromEntries(of.partitions.map(p => [p.partitionIndex, Number(p.committedOffset)]))
  }

  setOffsets(groupId, name, offsets) {
    const partitionOffsets = Object.entries(offsets).map(([p, offset]) => ({ partition: Number(p), offset: BigInt(offset) }))
    return this.client.alterConsumerGroupOffsets({ groupId, topics: [{ name, partitionOffsets }] })
  }

  deleteOffset(groupId, name, partition) {
    return this.client.deleteConsumerGroupOffsets({ groupId, topics: [{ name, partitionIndexes: [partition] }] })
  }

  deleteGroup(group) {
    return this.client.deleteGroups({ groups: [group] })
  }

  close() {
    return this.client.close()
  }
}
