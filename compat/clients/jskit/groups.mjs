// The checks of consumer groups: members that share this process, and one in a
// process that is killed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import readline from 'node:readline'
import { within } from './time.mjs'

export const groupWait = 45_000 // for one group to settle or to read
const session = { sessionTimeout: 6000 } // in milliseconds; the least that is allowed
const longSession = { sessionTimeout: 30_000 } // of one that is killed and started again: starting may take its time

const env = process.env
const memberVariable = 'COMPAT_MEMBER' // of a process that is to be a member and be killed: its group, and how

// Member is one member of a group. A client's own has start, which resolves
// once it reads; commit, of what next has; and close, which leaves the group
// and keeps a static member's place. It calls given, taken, saw and failed.
export class Member {
  held = new Set()
  told = 0 // how many times it was given partitions, none included
  next = new Map() // the offset to commit, by partition
  error = null
  changed = () => {}
  wants = () => true // whether a record is to be counted as read

  given(partitions) {
    for (const p of partitions) this.held.add(p)
    this.told++
    this.changed()
  }

  taken(partitions = [...this.held]) {
    for (const p of partitions) this.held.delete(p)
    this.changed()
  }

  saw(partition, offset) {
    if (this.wants(partition, offset)) this.next.set(partition, offset + 1)
  }

  failed(error) {
    this.error ??= error
    this.changed()
  }
}

// groupChecks are the checks of one client, whose driver has
// member(token, group, topic, {instance, cooperative, sessionTimeout}), a Member of its own,
// and closeLeaves if that leaves its group even where it is static.
export function groupChecks({ named, driver, cannot = {} }, token, print) {
  const topic = env.COMPAT_GROUP_TOPIC
  const member = (group, how = {}) => driver.member(token('ACME'), group, topic, { ...session, ...how })

  const inGroup = does => async check => {
    const group = named(check)
    print(`group ${check} ${group}`)
    const team = new Team(how => member(group, how))
    try {
      await does(check, team, group)
    } finally {
      await team.close()
    }
  }

  const show = (check, team) => team.members.forEach((m, i) =>
    print(`member ${check} ${i} ${[...m.held].sort().join(',') || 'none'}`))

  const share = (count, how) => async (check, team) => {
    const mayIdle = how?.cooperative && cannot.balance !== undefined
    for (let i = 0; i < count; i++) {
      await team.join(how)
      if (how?.cooperative) await team.settle(mayIdle) // so that partitions change hands
    }
    await team.settle(mayIdle)
    show(check, team)
  }

  return {
    'group-resume': inGroup(async (check, team) => {
      const all = 4 * Number(env.COMPAT_GROUP_COUNT)
      for (const count of [all / 2, all - all / 2]) {
        await team.read(count, (partition, offset) => print(`got ${check} ${partition} ${offset}`))
      }
    }),
    'group-3': inGroup(share(3)),
    'group-10': inGroup(share(10)),
    'group-cooperative': inGroup(share(3, { cooperative: true })),
    'group-killed': inGroup(async (check, team, group) => {
      await team.join()
      await team.take(new MemberProcess(group, {}))
      await team.settle()
      await team.leave(1)
      await team.settle()
      show(check, team)
    }),
    'group-static': inGroup(async (check, team, group) => {
      const restarts = { instance: 'restarts' }
      const start = () => driver.closeLeaves
        ? team.take(new MemberProcess(group, { ...restarts, ...longSession }))
        : team.join(restarts)
      const stays = await team.join({ instance: 'stays' })
      await start()
      await team.settle()
      const before = stays.told
      await team.leave(1)
      await start()
      await team.settle()
      print(`rebalances ${check} ${before} ${stays.told}`)
      show(check, team)
    }),
  }
}

// MemberProcess is a member in a process of its own. Its close kills it.
class MemberProcess extends Member {
  constructor(group, how) {
    super()
    this.settings = { ...env, [memberVariable]: JSON.stringify({ group, how }) }
  }

  async start() {
    this.process = spawn(process.execPath, process.argv.slice(1), { env: this.settings, stdio: ['ignore', 'pipe', 'inherit'] })
    this.exited = once(this.process, 'exit')
    const lines = readline.createInterface({ input: this.process.stdout })
    lines.on('line', line => {
      const [told, ...held] = line.split(' ').map(Number)
      this.told = told
      this.held = new Set(held)
      this.changed()
    })
    lines.on('close', () => this.failed(new Error('a member in a process of its own has ended')))
  }

  async close() {
    this.process.kill('SIGKILL')
    await this.exited
  }
}

// isMember says whether this process is to be a MemberProcess.
export const isMember = () => env[memberVariable] !== undefined

// beMember tells every change to the process that started this one, until that
// kills it.
export async function beMember({ driver }, token, print) {
  const { group, how } = JSON.parse(env[memberVariable])
  const m = driver.member(token('ACME'), group, env.COMPAT_GROUP_TOPIC, { ...session, ...how })
  m.changed = () => print([m.told, ...m.held].join(' '))
  setTimeout(() => process.exit(1), 2 * groupWait)
  await m.start()
}

class Team {
  members = []
  #make
  #settled = () => {}

  constructor(make) {
    this.#make = make
  }

  join(how) {
    return this.take(this.#make(how))
  }

  async take(m) {
    m.changed = () => this.#settled()
    this.members.push(m)
    await within(groupWait, m.start(), 'starting')
    return m
  }

  async leave(i) {
    const [m] = this.members.splice(i, 1)
    await m.close()
  }

  async close() {
    await Promise.all(this.members.splice(0).map(m => m.close()))
  }

  // settle waits until every member was told what it holds, each partition is
  // held by one of them, none more than its share, and none holds nothing that
  // need not, or may.
  async settle(mayIdle = false) {
    const settled = new Promise((resolve, reject) => {
      this.#settled = () => {
        const failed = this.members.find(m => m.error !== null)
        if (failed !== undefined) reject(failed.error)
        const held = this.members.flatMap(m => [...m.held]).sort()
        const count = this.members.length
        const fair = this.members.every(m => m.told > 0 && m.held.size <= Math.ceil(4 / count))
        const idle = this.members.filter(m => m.held.size === 0).length
        if (fair && held.join() === '0,1,2,3' && (mayIdle || idle === Math.max(count - 4, 0))) resolve()
      }
      this.#settled()
    })
    await within(groupWait, settled, 'settling')
  }

  // read lets one member read so many records, commit them and leave.
  async read(count, got) {
    const m = this.#make()
    this.members.push(m)
    const enough = new Promise((resolve, reject) => {
      m.wants = (partition, offset) => {
        if (count === 0) return false
        got(partition, offset)
        if (--count === 0) resolve()
        return true
      }
      m.changed = () => m.error !== null && reject(m.error)
    })
    await within(groupWait, Promise.all([enough, m.start()]), 'reading')
    await m.commit()
    await this.leave(0)
  }
}
