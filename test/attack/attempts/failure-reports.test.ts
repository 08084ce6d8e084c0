import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { folderOf } from '../../support/daemon.js'
import { filesIn } from '../../support/secret-search.js'
import { daemonOf } from '../network/user-daemon.js'
import { walled } from '../support.js'
import { USERS } from '../users.js'

t.setTimeout(300_000)

const VALUE = 'c0rrect-horse/battery+staple'
const OF_ENVIRONMENT = 'only-in-the-environment-7f3a'
const HEX = Buffer.from(VALUE).toString('hex')
const HIDDEN = [
  VALUE,
  JSON.stringify(VALUE).slice(1, -1),
  encodeURIComponent(VALUE),
  Buffer.from(VALUE).toString('base64'),
  HEX,
  'AKIAIOSFODNN7EXAMPLE',
  'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  'hunter2hunter2',
]

/** What a failure may carry, each thrown where nobody catches it. */
const FAILURES: { readonly [what: string]: string } = {
  'in its words': `new Error(${JSON.stringify(`invalid url ${VALUE}`)})`,
  'in its cause': `new Error('outer', { cause: new Error(${JSON.stringify(VALUE)}) })`,
  'in the name of a function': `Object.assign(new Error('x'), { stack: 'Error: x\\n    at ${VALUE} (a.js:1:1)' })`,
  'as a text': JSON.stringify(`text ${VALUE}`),
  'percent-encoded': `new Error(${JSON.stringify(`GET /x?q=${encodeURIComponent(VALUE)}`)})`,
  'in base64': `new Error(${JSON.stringify(Buffer.from(VALUE).toString('base64'))})`,
  'in hexadecimal digits': `new Error(${JSON.stringify(HEX)})`,
  'an access key': "new Error('AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY')",
  'a password in an address': "new Error('cannot reach postgres://ada:hunter2hunter2@db/x')",
  'escapes of terminals': "new Error('\\u001b]52;c;aGk=\\u0007 \\u202e')",
  'a cause that is its own': "(error => Object.assign(error, { cause: error }))(new Error('round'))",
  'endless words': "new Error('x'.repeat(50_000_000))",
}

/** A daemon that fails once for each way, at each signal. */
const failing = async (t: Test, uid: number) => {
  const folder = folderOf(t)
  const code = join(folder, 'fails.mjs')
  const all = Object.values(FAILURES)
  writeFileSync(
    code,
    `const all = [${all.map(failure => `() => ${failure}`).join(',\n')}]\n`
      + `let at = 0\nprocess.on('SIGUSR2', () => { const error = all[at++](); if (at % 2) throw error\n`
      + '  void Promise.reject(error) })\n',
  )
  for (const path of [folder, code]) chmodSync(path, 0o755)
  const options = [process.env['NODE_OPTIONS'], '--import', pathToFileURL(code).href].filter(Boolean).join(' ')
  return daemonOf(t, uid, {}, { NODE_OPTIONS: options, SOME_TOKEN: OF_ENVIRONMENT })
}

for (const [user, uid] of USERS)
  t.test(`${user}: a report of a failure has no value, and nothing of the environment`, walled(), async t => {
    const daemon = await failing(t, uid)
    const { client, data } = daemon
    await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await client.call('POST /secrets', { key: 'A', value: VALUE })
    const crashes = join(data, 'logs/crash')
    const count = () => (existsSync(crashes) ? readdirSync(crashes).length : 0)
    for (const what of Object.keys(FAILURES)) {
      const before = count()
      process.kill(daemon.pid, 'SIGUSR2')
      while (count() === before) await client.call('GET /logs', { kind: 'crash' })
      t.equal(count(), before + 1, what)
    }
    for (const { name } of (await client.call('GET /logs', { kind: 'crash' })).files) {
      const place = join(data, 'logs', name)
      const text = readFileSync(place, 'utf8')
      const about = text.slice(0, 400)
      t.same(
        [...HIDDEN, OF_ENVIRONMENT].filter(hidden => text.includes(hidden)),
        [],
        about,
      )
      t.equal(statSync(place).mode & 0o077, 0, 'only the user reads it')
      t.ok(text.length < 100_000, `${text.length} characters`)
      t.notMatch(text, /[\u0007\u001b\u202e]/, about)
    }
    await daemon.terminate()
    const shown = filesIn(join(data, 'logs')).filter(path => {
      const text = readFileSync(path, 'utf8')
      return [VALUE, OF_ENVIRONMENT, ...HIDDEN].some(hidden => text.includes(hidden))
    })
    t.same(shown, [], 'nor has any log')
  })
