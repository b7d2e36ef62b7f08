// The administration of kafkajs.
export class Admin {
  constructor(client, { AssignerProtocol, ConfigResourceTypes }) {
    this.client = client
    this.decode = AssignerProtocol.MemberAssignment.decode
    this.ofTopic = name => ({ type: ConfigResourceTypes.TOPIC, name })
  }

  createTopic(topic, numPartitions, configs) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    return this.client.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1, configEntries }] })
  }

  topics() {
    return this.client.listTopics()
  }

  async partitions(topic) {
    return (await this.client.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  }

  addPartitions(topic, count) {
    return this.client.createPartitions({ topicPartitions: [{ topic, count }] })
  }

  deleteTopic(topic) {
    return this.client.deleteTopics({ topics: [topic] })
  }

  async configs(topic) {
    const { resources } = await this.client.describeConfigs({ resources: [this.ofTopic(topic)], includeSynonyms: false })
    return Object.fromEntries(resources[0].configEntries.map(e => [e.configName, e.configValue]))
  }

  // AlterConfigs: what is not named goes back to its default.
  setConfig(topic, name, value) {
    const resource = { ...this.ofTopic(topic), configEntries: [{ name, value }] }
    return this.client.alterConfigs({ validateOnly: false, resources: [resource] })
  }

  async groups() {
    return (await this.client.listGroups()).groups.map(g => g.groupId)
  }

  async members(group, topic) {
    const { groups } = await this.client.describeGroups([group])
    return groups[0].members.map(m => this.decode(m.memberAssignment).assignment[topic] ?? [])
  }

  async offsets(group, topic) {
    const [of] = await this.client.fetchOffsets({ groupId: group, topics: [topic] })
    return Object.fromEntries(of.partitions.filter(p => p.offset !== '-1').map(p => [p.partition, Number(p.offset)]))
  }

  setOffsets(group, topic, offsets) {
    const partitions = Object.entries(offsets).map(([partition, offset]) => ({ partition: Number(partition), offset: String(offset) }))
    return this.client.setOffsets({ groupId: group, topic, partitions })
  }

  deleteGroup(group) {
    return this.client.deleteGroups([group])
  }

  close() {
    return this.client.disconnect()
  }
}
