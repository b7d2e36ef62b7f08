// The checks of transactions. Which offsets they commit, and for what: README.md
// one folder up. driver.transactional(token, id) makes a producer, which fences
// those of the same id, and is, or promises,
//
//   begin(), commit(), abort(), close()
//   produce(topic, records)              to partition 0, in order
//   offsets(group, topic, offsets)       an object, by partition
import { rows } from './data.mjs'

const env = process.env

export function txnChecks({ named, cannot = {}, driver }, { token, print, told }) {
  // What one check has: a topic, a group and a transactional id of one name.
  const caseOf = check => {
    const name = named(check)
    print(`topic ${check} ${name}`)
    print(`group ${check} ${name}`)
    const records = rows(env.COMPAT_DATASET).filter(r => r.check === check && !cannot[r.id]).map(r => r.record)
    const record = value => ({ key: null, value: Buffer.from(value), headers: [] })
    return {
      open: () => driver.transactional(token('ACME'), name),
      async good(producer) {
        await producer.begin()
        await producer.produce(name, records)
        await producer.offsets(name, env.COMPAT_GROUP_TOPIC, { 1: 4, 2: 7 })
        await producer.commit()
      },
      async never(producer) {
        await producer.begin()
        await producer.produce(name, [record('never')])
        await producer.offsets(name, env.COMPAT_GROUP_TOPIC, { 0: 9 })
      },
      late: producer => producer.produce(name, [record('of a fenced one')]),
    }
  }

  const using = async (producer, does) => {
    try {
      await does(producer)
    } finally {
      await producer.close()
    }
  }

  const refusal = async (what, attempt) => {
    const e = await attempt().then(() => null, e => e)
    if (e === null) throw new Error(`a fenced producer goes on: ${what}`)
    return `${what}: ${told(e)}`
  }

  return {
    async 'txn-commit'(check) {
      const c = caseOf(check)
      await using(await c.open(), c.good)
    },
    async 'txn-abort'(check) {
      const c = caseOf(check)
      await using(await c.open(), async producer => {
        await c.never(producer)
        await producer.abort()
        await c.good(producer)
      })
    },
    async 'txn-fenced'(check) {
      const c = caseOf(check)
      await using(await c.open(), async first => {
        await c.never(first)
        await using(await c.open(), c.good)
        print(`said ${check} ${await refusal('records', () => c.late(first))}; ${await refusal('commit', () => first.commit())}`)
      })
    },
  }
}
