// The checks of consumer groups: members that share this process, and one in a
// process that is killed.
import { spawn } from 'node:child_process'
import readline from 'node:readline'
import { within } from './time.mjs'

export const groupWait = 45_000 // for one group to settle or to read
export const sessionTimeout = 6000 // of every member, in milliseconds; the least that is allowed

const env = process.env
const memberVariable = 'COMPAT_MEMBER' // a process that is to be a member and be killed

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
// member(token, group, topic, {instance, cooperative}), a Member of its own.
export function groupChecks({ name, version, driver }, token, print) {
  const topic = env.COMPAT_GROUP_TOPIC
  const member = (group, how = {}) => driver.member(token('ACME'), group, topic, how)

  const inGroup = does => async check => {
    const group = `${env.COMPAT_RUN}-${name}-${version}-${check}`
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
    for (let i = 0; i < count; i++) await team.join(how)
    await team.settle()
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
      const victim = spawn(process.execPath, process.argv.slice(1), {
        env: { ...env, [memberVariable]: group }, stdio: ['ignore', 'pipe', 'inherit'],
      })
      try {
        const stays = await team.join()
        await within(groupWait, untilShared(victim, stays), 'sharing with the one to be killed')
      } finally {
        victim.kill('SIGKILL')
      }
      await team.settle()
      show(check, team)
    }),
    'group-static': inGroup(async (check, team) => {
      const stays = await team.join({ instance: 'stays' })
      await team.join({ instance: 'restarts' })
      await team.settle()
      const before = stays.told
      await team.leave(1)
      await team.join({ instance: 'restarts' })
      await team.settle()
      print(`rebalances ${check} ${before} ${stays.told}`)
      show(check, team)
    }),
  }
}

// untilShared waits until the other process and the member hold something each.
async function untilShared(victim, stays) {
  for await (const line of readline.createInterface({ input: victim.stdout })) {
    if (['1', '2', '3'].includes(line) && stays.held.size > 0 && stays.held.size < 4) return
  }
  throw new Error('the process that was to be killed ended by itself')
}

// victimOf is the group that this process is to be a member of, until it is killed.
export const victimOf = () => env[memberVariable]

// beVictim prints how many partitions it holds, over and over: who reads it
// looks at another member's as well.
export async function beVictim({ driver }, token, print) {
  const m = driver.member(token('ACME'), victimOf(), env.COMPAT_GROUP_TOPIC, {})
  m.changed = () => print(m.held.size)
  setInterval(m.changed, 100)
  setTimeout(() => process.exit(1), groupWait)
  await m.start()
}

class Team {
  members = []
  #make
  #settled = () => {}

  constructor(make) {
    this.#make = make
  }

  async join(how) {
    const m = this.#make(how)
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

  // settle waits until every member was told what it holds and each partition
  // is held by one of them.
  async settle() {
    const settled = new Promise((resolve, reject) => {
      this.#settled = () => {
        const failed = this.members.find(m => m.error !== null)
        if (failed !== undefined) reject(failed.error)
        const held = this.members.flatMap(m => [...m.held]).sort()
        if (held.join() === '0,1,2,3' && this.members.every(m => m.told > 0)) resolve()
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
