// Takes the clients written in JavaScript through the shared list of checks.
// What a check does and prints is here, by README.md one folder up. A client
// is a driver:
//
//   brokers(token)                          the addresses of all brokers
//   refused(token)                          tries to log in; all that a user is shown of the refusal
//   produce(token, topic, how, records)     to partition 0, in order; how is {codec, idempotent}
//   read(token, topic, count, offsets)      count records of partition 0 from each of the offsets, with one consumer
//   offsetAt(token, topic, milliseconds)    looks a time up in partition 0
//   end(token, topic)                       the end offset of partition 0
//   topics(token)                           lists all topics
//   member(token, group, topic, how)        a Member of groups.mjs; how is {instance, cooperative, sessionTimeout}
//   admin(token), transactional(token, id)  see admins.mjs and txns.mjs
//   closeLeaves                             true if a static member cannot be closed without leaving its group
//
// Each method makes what it needs and closes it. It throws Skip for what its
// client cannot do at all.
import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { adminChecks } from './admins.mjs'
import { fields, rows } from './data.mjs'
import { beMember, groupChecks, groupWait, isMember } from './groups.mjs'
import { within } from './time.mjs'
import { txnChecks } from './txns.mjs'

const checkDeadline = 20_000
const env = process.env

export class Skip extends Error {}

export const bootstrap = env.QUEEN_EDGE_BOOTSTRAP
export const token = label => env[`QUEEN_EDGE_TOKEN_${label}`]

// installed is require() for what deps installed for a client.
export function installed(client) {
  return createRequire(path.join(env.COMPAT_CACHE, client, 'package.json'))
}

// version is that of a package that deps installed for a client.
export function version(client, name) {
  return JSON.parse(fs.readFileSync(path.join(env.COMPAT_CACHE, client, 'node_modules', name, 'package.json'))).version
}

// named names what a check makes: a topic, a group, a transactional id.
const named = ({ name, version }) => check => `${env.COMPAT_RUN}-${name}-${version}-${check}`

// run takes one client, {name, version, cannot, driver}, through all checks.
export async function run(client) {
  if (isMember()) return beMember(client, token, print)
  print(`client ${client.name} ${client.version}`)
  for (const [what, why] of Object.entries(client.cannot ?? {})) print(`cannot ${what}: ${why}`)
  for (const [check, does] of Object.entries(checksOf(client))) await one(client, check, does, checkDeadline)
  const of = { ...client, named: named(client) }
  for (const [check, does] of Object.entries(groupChecks(of, token, print))) {
    await one(client, check, does, 2 * groupWait) // every wait in it is shorter
  }
  const rest = { token, print, told: e => oneLine(shown(e)) }
  for (const [check, does] of Object.entries({ ...adminChecks(of, rest), ...txnChecks(of, rest) })) await one(client, check, does, groupWait) // kafkajs joins a group to set offsets: 5 s each time
  // Not before stdout has taken everything: it may be a pipe.
  process.stdout.write('', () => process.exit(0))
}

async function one(client, check, does, deadline) {
  const start = Date.now()
  let result = `pass ${check}`
  try {
    await within(deadline, does(check))
  } catch (e) {
    result = `${e instanceof Skip ? 'skip' : 'fail'} ${check}: ${oneLine(shown(e))}`
  }
  print(result)
  process.stderr.write(`${client.version} ${result} (${Date.now() - start} ms)\n`)
}

function checksOf({ name, version, cannot = {}, driver }) {
  const readTopic = env.COMPAT_READ_TOPIC

  const refusal = password => async check => print(`said ${check} ${oneLine(await driver.refused(password))}`)

  const unauthorized = attempt => async check => {
    const refusal = await attempt().then(() => null, e => e)
    if (refusal === null) throw new Error('it was allowed')
    if (refusal instanceof Skip) throw refusal
    print(`said ${check} ${oneLine(shown(refusal))}`)
  }

  const produce = (how, lines) => async check => {
    const records = rows(env.COMPAT_DATASET).filter(r => r.check === (lines ?? check) && !cannot[r.id]).map(r => r.record)
    const topic = named({ name, version })(check)
    print(`topic ${check} ${topic}`)
    await driver.produce(token('ACME'), topic, how, records)
  }

  const printRead = (check, records) => records.forEach(r => print(`read ${check} ${fields(r)}`))

  const plain = { codec: 'none', idempotent: false }
  const steps = {
    connect: async () => {
      const got = await driver.brokers(token('ACME'))
      if (got.length !== 1 || got[0] !== bootstrap) throw new Error(`brokers ${got}, want ${bootstrap}`)
    },
    'bad-token': refusal('not-a-token'),
    'missing-scope': refusal(token('ACME_NOREAD')),
    'scope-produce': unauthorized(() =>
      driver.produce(token('ACME_CONSUME'), readTopic, plain, [{ key: null, value: Buffer.from('never'), headers: [] }])),
    'scope-consume': unauthorized(() => driver.read(token('ACME_PRODUCE'), readTopic, 1, [0])),
    'create-by-produce': produce(plain),
  }
  for (const codec of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
    steps[`codec-${codec}`] = produce({ codec, idempotent: false }, 'codec')
  }
  for (const check of ['keys-and-nulls', 'headers', 'timestamps', 'sizes']) steps[check] = produce(plain)
  return {
    ...steps,
    consume: async check =>
      printRead(check, await driver.read(token('ACME'), readTopic, Number(env.COMPAT_READ_COUNT), [0])),
    seek: async check => printRead(check, await driver.read(token('ACME'), readTopic, 1, [5, 1])),
    'by-time': async check => {
      const offset = await driver.offsetAt(token('ACME'), env.COMPAT_TIME_TOPIC, Number(env.COMPAT_TIME))
      printRead(check, await driver.read(token('ACME'), env.COMPAT_TIME_TOPIC, 1, [offset]))
    },
    isolation: async check => {
      const end = await driver.end(token('GLOBEX'), readTopic)
      printRead(check, await driver.read(token('GLOBEX'), readTopic, end, [0]))
      for (const topic of await driver.topics(token('GLOBEX'))) print(`list ${topic}`)
    },
    idempotent: produce({ codec: 'none', idempotent: true }),
  }
}

// batches cuts messages for clients whose send is one batch of everything it
// is given. A batch may have 1 MB.
export function batches(messages) {
  const out = [[]]
  let size = 0
  for (const m of messages) {
    const more = (m.key?.length ?? 0) + (m.value?.length ?? 0)
    if (size > 0 && size + more > 500_000) {
      out.push([])
      size = 0
    }
    out.at(-1).push(m)
    size += more
  }
  return out
}

// shown is an error with all that caused it, as a user would see it.
export function shown(e) {
  if (e === undefined || e === null) return ''
  const inner = [e.serverErrorMessage, e.cause, e.originalError, ...(e.errors ?? [])].map(shown)
  return [...new Set([String(e.message ?? e), ...inner])].filter(text => text !== '').join(': ')
}

const oneLine = text => text.split(/\s+/).filter(word => word !== '').join(' ')

const print = line => process.stdout.write(line + '\n')
