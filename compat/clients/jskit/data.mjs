// The forms of dataset.tsv, and the lines of it that a check writes.
import fs from 'node:fs'

// rows reads the data set. A row is {check, id, record}; a record has key and
// value (a Buffer or null), time (milliseconds; undefined leaves it to the
// client) and headers, a list of {name, value}.
export function rows(file) {
  return fs.readFileSync(file, 'utf8').split('\n').filter(line => line !== '' && !line.startsWith('#')).map(line => {
    const [check, id, key, value, time, headers] = line.split('\t')
    return {
      check,
      id,
      record: {
        key: bytes(key),
        value: bytes(value),
        time: time === 'now' ? undefined : Number(time),
        headers: headers === 'none' ? [] : headers.split(',').map(header),
      },
    }
  })
}

function header(text) {
  const [name, value] = text.split('=')
  return { name: bytes(name).toString('utf8'), value: bytes(value) }
}

function bytes(form) {
  if (form === 'null') return null
  if (form.startsWith('x')) return Buffer.from(form.slice(1), 'hex')
  if (!form.startsWith('r')) throw new Error(`not a form of the data set: ${form}`)
  return Buffer.from(Array.from({ length: Number(form.slice(1)) }, (_, i) => 97 + (i % 26)))
}

// fields is a record that was read, as a line of the report shows it. Headers
// that its client does not show are null.
export function fields(record) {
  const headers = record.headers?.map(h => `${form(h.name)}=${form(h.value)}`).join(',') ?? '?'
  return `${record.offset} ${form(record.key)} ${form(record.value)} ${record.time} ${headers || 'none'}`
}

function form(value) {
  return value === null || value === undefined ? 'null' : 'x' + Buffer.from(value).toString('hex')
}
