// The checks of administration. driver.admin(token) logs in and is, or promises,
//
//   createTopic(topic, partitions, configs)   configs are an object of texts
//   topics(), groups()                        lists of names
//   partitions(topic)                         how many it has
//   addPartitions(topic, total)               raises it to so many
//   deleteTopic(topic), deleteGroup(group)
//   configs(topic)                            an object of texts
//   setConfig(topic, name, value)
//   members(group, topic)                     of each member a list of the partitions it holds
//   offsets(group, topic)                     an object, by partition
//   setOffsets(group, topic, offsets)
//   deleteOffset(group, topic, partition)
//   close()
//
// A refusal rejects.
const env = process.env

export function adminChecks({ named, cannot = {}, driver }, { token, print, told }) {
  const topic = env.COMPAT_GROUP_TOPIC

  const withAdmin = does => async check => {
    const admin = await driver.admin(token('ACME'))
    try {
      await does(admin, check)
    } finally {
      await admin.close()
    }
  }

  const topicOf = check => {
    print(`topic ${check} ${named(check)}`)
    return named(check)
  }

  // Names of what is there to be deleted are not told: they are to be listed.
  const deleteOne = async (check, names, remove) => {
    const name = names.find(n => n.startsWith(env.COMPAT_DOOMED))
    await remove(name)
    print(`gone ${check} ${name}`)
  }

  return {
    'admin-topics': withAdmin(async (admin, check) => {
      const made = topicOf(check)
      await admin.createTopic(made, 2, { 'retention.ms': '3600000' })
      expect(2, await admin.partitions(made))
      await admin.addPartitions(made, 3)
      expect(3, await admin.partitions(made))
      await deleteOne(check, await admin.topics(), name => admin.deleteTopic(name))
    }),
    'admin-configs': withAdmin(async (admin, check) => {
      const made = topicOf(check)
      await admin.createTopic(made, 1, {})
      expect('-1', (await admin.configs(made))['retention.ms'])
      await admin.setConfig(made, 'retention.ms', '7200000')
      const refusal = await admin.setConfig(made, 'message.timestamp.type', 'LogAppendTime').then(() => null, e => e)
      if (refusal === null) throw new Error('what cannot be was allowed')
      print(`said ${check} ${told(refusal)}`)
      for (const [name, value] of Object.entries(await admin.configs(made))) print(`config ${check} ${name} ${value}`)
    }),
    'admin-groups': withAdmin(async (admin, check) => {
      const members = await admin.members(env.COMPAT_ALIVE_GROUP, topic)
      members.forEach((held, i) => print(`member ${check} ${i} ${held.join(',') || 'none'}`))
      const group = named(check)
      print(`group ${check} ${group}`)
      await admin.setOffsets(group, topic, { 0: 1, 1: 2, 2: 3 })
      await admin.setOffsets(group, topic, { 0: 5 })
      const left = { 0: 5, 1: 2, 2: 3 }
      if (!cannot['delete.admin-groups']) {
        await admin.deleteOffset(group, topic, 2)
        delete left[2]
      }
      expect(JSON.stringify(left), JSON.stringify(await admin.offsets(group, topic)))
      await deleteOne(check, await admin.groups(), name => admin.deleteGroup(name))
    }),
  }
}

function expect(want, got) {
  if (got !== want) throw new Error(`want ${want}, got ${got}`)
}
