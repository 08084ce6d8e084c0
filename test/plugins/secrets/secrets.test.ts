import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import fc from 'fast-check'
import t from 'tap'
import type { SecretsCalls } from '../../../plugins/secrets/contract.js'
import type { Input } from '../../../sdk/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { folderOf, spawnDaemon, type Support } from '../../support/daemon.js'
import { maskedValues } from '../../../plugins/secrets/masked-values.js'
import { exactly } from '../../support/lists.js'
import { clientOf } from '../../support/people.js'
import { meantInClear } from '../../support/secret-search.js'
import { filesWith, inner, openVaultOf, secretsWith } from './support.js'

const VALUE = 'tr0ub4dor&3-and-more'
const FIRST = 'the-first-value-5521'
const CALLS: readonly [method: string, path: string, body: object | undefined, least: 'maintainer' | 'owner'][] = [
  ['POST', '/secrets', { key: 'A', value: VALUE }, 'maintainer'],
  ['GET', '/secrets', undefined, 'maintainer'],
  ['DELETE', '/secrets/A', undefined, 'maintainer'],
  ['GET', '/secrets/inventory', undefined, 'maintainer'],
  ['POST', '/secrets/reveal', { key: 'A' }, 'owner'],
  ['GET', '/secrets/store', undefined, 'maintainer'],
  ['POST', '/secrets/store', { kind: 'vault', unlock: 'file' }, 'owner'],
  ['POST', '/secrets/generate', { key: 'A' }, 'maintainer'],
  ['POST', '/secrets/import', { text: 'A=1' }, 'maintainer'],
  ['POST', '/secrets/ci', { targets: [{ repo: 'root' }] }, 'owner'],
  ['GET', '/secrets/uses', undefined, 'maintainer'],
]

const use = (text: string): Input<SecretsCalls, 'secrets.resolve'> => ({
  text,
  lane: 'shell',
  detail: text.slice(0, 80),
})

t.test('without a credential, as a collaborator or with a token no call answers', async t => {
  const { daemon } = await secretsWith(t)
  const tokens = await Promise.all((['editor', 'read', 'drive', 'land'] as const).map(scope => daemon.token(scope)))
  for (const [method, path, body, least] of CALLS) {
    const send = async (headers: { [name: string]: string }) => {
      const type = body ? { 'content-type': 'application/json' } : {}
      const sent = { method, headers: { ...headers, ...type }, ...(body && { body: JSON.stringify(body) }) }
      return (await fetch(daemon.url + path, sent as RequestInit)).status
    }
    t.equal(await send({}), 401, `${method} ${path}`)
    t.equal(await send({ authorization: 'Bearer cas@example.org' }), 403, `${method} ${path} as a collaborator`)
    if (least === 'owner')
      t.equal(await send({ authorization: 'Bearer mai@example.org' }), 403, `${method} ${path} as a maintainer`)
    for (const { token } of tokens)
      t.equal(await send({ 'x-sandbox-control': token }), 403, `${method} ${path} with a token`)
  }
  t.same((await daemon.client.call('GET /secrets/store')).configured, false)
})

for (const [what, store] of Object.entries<(daemon: Support) => Promise<object>>({
  'POST /secrets': ({ client }) => client.call('POST /secrets', { key: 'A', value: FIRST }),
  'POST /secrets/generate': ({ client }) => client.call('POST /secrets/generate', { key: 'A' }),
  'POST /secrets/import': ({ client }) => client.call('POST /secrets/import', { text: `A=${FIRST}` }),
  'secrets.put': daemon => inner(daemon, 'secrets.put', { name: 'github/token', value: FIRST }),
})) {
  t.test(`the first value, stored by ${what}, makes the store and says so; a second does not`, async t => {
    const { daemon, recorded } = await secretsWith(t)
    const { client } = daemon
    const says = what === 'secrets.put' ? undefined : 'made'
    t.match(await store(daemon), { store: says })
    t.match(await client.call('GET /secrets/store'), { kind: 'vault', unlock: 'file', locked: false })
    const made = recorded.filter(({ type }) => type === 'secret.store')
    t.match(made, exactly({ outcome: 'ok', extra: { kind: 'vault', unlock: 'file', moved: 0 } }))
    t.equal(statSync(join(daemon.data, 'secrets/secrets.vault')).mode & 0o777, 0o600)
    t.match(await client.call('POST /secrets', { key: 'B', value: FIRST }), { store: undefined })
    t.match(await inner(daemon, 'secrets.names'), { open: true, made: true })
    t.same(filesWith(daemon.data, FIRST), [])
    const { moved } = await client.call('POST /secrets/store', {
      kind: 'vault',
      unlock: 'passphrase',
      passphrase: 'p'.repeat(12),
    })
    t.equal(moved, 2, 'the owner chooses otherwise afterwards')
  })
}

t.test('where no file can be written the first value is refused, and stays refused until one can', async t => {
  const { daemon } = await secretsWith(t)
  const { client } = daemon
  const folder = join(daemon.data, 'secrets')
  const set = () => client.call('POST /secrets', { key: 'A', value: FIRST })
  await client.call('GET /secrets')
  // Permissions do not stop the superuser; a read-only mount does.
  const isRoot = process.getuid?.() === 0
  const mount = (...args: string[]) => spawnSync('mount', [...args, folder]).status === 0
  if (isRoot && !mount('--bind', folder)) return t.comment('this machine mounts nothing')
  if (isRoot) t.teardown(() => void spawnSync('umount', ['--lazy', folder]))
  const writable = (is: boolean) =>
    isRoot ? mount('-o', `remount,bind,${is ? 'rw' : 'ro'}`) : (chmodSync(folder, is ? 0o700 : 0o500), true)
  t.ok(writable(false))
  t.match(await refusalOf(set), {
    status: 409,
    message: /^the sandbox has nowhere to keep secrets: .*\((?:EROFS|EACCES)\)$/,
  })
  t.match(await client.call('GET /secrets/store'), { configured: false })
  t.same(await client.call('GET /secrets/inventory'), { entries: [] })
  t.ok(writable(true))
  t.match(await set(), { ok: true, store: 'made' })
})

t.test('before there is a store, what only reads answers and makes none', async t => {
  const { daemon } = await secretsWith(t)
  const { client } = daemon
  const bound = { key: 'A', value: '__vaulted__', hosts: ['a.example'] }
  t.match(await refusalOf(() => client.call('POST /secrets', bound)), { status: 404 })
  t.match(await refusalOf(() => client.call('POST /secrets', { key: 'A', value: '' })), { status: 400 })
  const nothing = { added: [], replaced: [], skipped: [{ key: 'A', reason: 'empty' as const }] }
  t.same(await client.call('POST /secrets/import', { text: 'A=\n' }), nothing)
  t.match(await inner(daemon, 'secrets.names'), { open: true, made: false })
  t.match(await refusalOf(() => client.call('POST /secrets/reveal', { key: 'A' })), { status: 404 })
  t.same(await client.call('GET /secrets'), { keys: [] })
  t.same(await client.call('GET /secrets/inventory'), { entries: [] })
  t.same(await client.call('GET /secrets/uses', {}), { uses: [] })
  t.same(await client.call('DELETE /secrets/{key}', { key: 'A' }), { ok: true, removed: false })
  t.same(await inner(daemon, 'secrets.resolve', use('x {{secret:A}}')), { unknown: ['A'], names: [] })
  t.match(await client.call('GET /secrets/store'), {
    configured: false,
    locked: false,
    keys: 0,
    choices: exactly(
      { kind: 'vault', unlock: 'file', available: true },
      { kind: 'vault', unlock: 'passphrase', available: true },
      { kind: 'vault', unlock: 'keyring' },
      { kind: 'dotenv', available: true },
    ),
  })
})

t.test('bad input is refused, names the field, and never repeats a value', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  const hidden = 'do-not-say-this'
  const bad: [status: number, path: string, body: object, message: RegExp][] = [
    [400, '/secrets', { key: '1A', value: hidden }, /^key: expected/],
    [400, '/secrets', { key: 'A'.repeat(129), value: hidden }, /^key: expected/],
    [400, '/secrets', { key: 'A', value: '' }, /^value: expected a value/],
    [400, '/secrets', { key: 'A', value: [hidden] }, /^value: expected text/],
    [400, '/secrets', { key: 'A', value: 123456789 }, /^value: expected text, found another value/],
    [400, '/secrets', { key: 'A', value: `${hidden}\0` }, /^value: expected a value without NUL/],
    [400, '/secrets', { key: 'A', value: `${hidden}\ud800` }, /^value: expected well-formed/],
    [413, '/secrets', { key: 'A', value: hidden.repeat(5000) }, /^value: expected at most 65536 bytes/],
    [400, '/secrets', { key: 'A', value: hidden, hosts: ['a b'] }, /^hosts/],
    [400, '/secrets', { key: 'A', value: hidden, hosts: Array(51).fill('a.b') }, /^hosts/],
    [404, '/secrets', { key: 'A', value: '__vaulted__', hosts: ['a.b'] }, /^value: expected one/],
    [400, '/secrets/store', { kind: 'vault', unlock: 'passphrase' }, /^passphrase: expected 12 to 1024/],
    [
      400,
      '/secrets/store',
      { kind: 'vault', unlock: 'passphrase', passphrase: 'short-one' },
      /^passphrase: expected 12/,
    ],
    [400, '/secrets/store', { kind: 'vault', unlock: 'file', passphrase: hidden }, /^passphrase: expected none/],
    [400, '/secrets/store', { kind: 'vault', unlock: 'passphrase', passphrase: 123456789 }, /passphrase/],
    [400, '/secrets/store', { kind: 'cloud' }, /kind/],
    [400, '/secrets/generate', { key: 'A', recipe: { kind: 'random', length: 7 } }, /length/],
    [400, '/secrets/generate', { key: 'A', recipe: { kind: 'words', words: 3 } }, /words/],
    [400, '/secrets/generate', { key: 'A', recipe: { kind: 'ssh-key', comment: 'a\nb' } }, /comment/],
    [400, '/secrets/import', {}, /one of text and path, found neither/],
    [400, '/secrets/import', { text: `A=${hidden}`, path: '.env' }, /found both/],
    [400, '/secrets/import', { text: `A=${hidden}\nB="${hidden}\n` }, /^line 2: expected a closing "/],
    [404, '/secrets/import', { path: 'gone.env' }, /gone.env/],
    [404, '/secrets/import', { path: '.git/config' }, /no file of the workspace/],
    [400, '/secrets/import', { path: '../x' }, /path/],
    [413, '/secrets/import', { text: `A=1\nB=${hidden.repeat(5000)}` }, /^B: expected at most/],
  ]
  for (const [status, path, body, message] of bad) {
    const answer = await daemon.fetch(path, { method: 'POST', body: JSON.stringify(body) })
    const text = await answer.text()
    t.equal(answer.status, status, `${path} ${JSON.stringify(body).slice(0, 60)}: ${text.slice(0, 100)}`)
    t.match(JSON.parse(text).message, message)
    t.notMatch(text, /do-not-say|123456789|short-one/, 'no value is repeated')
  }
  t.same(await daemon.client.call('GET /secrets'), { keys: [] }, 'nothing was stored')
})

t.test('a value is stored, listed by name, used, replaced and removed', async t => {
  const { daemon, recorded } = await secretsWith(t)
  const { client } = daemon
  t.same(await openVaultOf(daemon), { ok: true, moved: 0 })
  t.same(await openVaultOf(daemon), { ok: true, moved: 0 }, 'the same choice again')
  t.same(await clientOf(daemon, 'mai@example.org').call('POST /secrets', { key: 'TOKEN', value: VALUE }), { ok: true })
  await client.call('POST /secrets', { key: 'OTHER', value: 'two\nlines of it' })
  t.same(await client.call('GET /secrets'), { keys: ['OTHER', 'TOKEN'] })
  t.same(await client.call('POST /secrets/reveal', { key: 'TOKEN' }), { value: VALUE })
  t.same(await inner(daemon, 'secrets.resolve', use('a {{secret:TOKEN}} b')), { text: `a ${VALUE} b` })
  t.same(await inner(daemon, 'secrets.resolveCommand', use('curl -u {{secret:TOKEN}}:"{{secret:OTHER}}"')), {
    text: 'curl -u "${SANDBOX_SECRET_1}":"${SANDBOX_SECRET_2}"',
    env: { SANDBOX_SECRET_1: VALUE, SANDBOX_SECRET_2: 'two\nlines of it' },
  })
  t.same(await inner(daemon, 'secrets.resolve', use('no reference')), { text: 'no reference' })
  t.same(await inner(daemon, 'secrets.resolve', use('{{secret:NONE}} {{secret:TOKEN}}')), {
    unknown: ['NONE'],
    names: ['OTHER', 'TOKEN'],
  })
  t.match(await inner(daemon, 'secrets.resolveCommand', use("cat <<'E'\n{{secret:TOKEN}}\nE")), {
    refused: /cannot stand inside a quoted here-document/,
  })
  await client.call('POST /secrets', { key: 'TOKEN', value: 'another-value' })
  t.same(await inner(daemon, 'secrets.resolve', use('{{secret:TOKEN}}')), { text: 'another-value' })
  t.same(await client.call('DELETE /secrets/{key}', { key: 'TOKEN' }), { ok: true, removed: true })
  t.same(await client.call('DELETE /secrets/{key}', { key: 'TOKEN' }), { ok: true, removed: false })
  t.same(await client.call('GET /secrets'), { keys: ['OTHER'] })
  t.same(
    recorded.map(({ type, extra }) => `${type} ${extra?.['key'] ?? ''}`),
    [
      'secret.store ',
      'secret.store ',
      'secret.set TOKEN',
      'secret.set OTHER',
      'secret.revealed TOKEN',
      'secret.set TOKEN',
      'secret.removed TOKEN',
    ],
  )
  t.notMatch(JSON.stringify(recorded), /tr0ub4dor|another-value/)
})

t.test(
  'the value is found in no file of the data folder or the workspace, in no log and no list of processes',
  async t => {
    const { daemon } = await secretsWith(t)
    await openVaultOf(daemon)
    const { workspace, data, client, kernel } = daemon
    await client.call('POST /secrets', { key: 'TOKEN', value: VALUE })
    await inner(daemon, 'secrets.resolve', { ...use(`curl {{secret:TOKEN}}`) })
    await client.call('POST /secrets/reveal', { key: 'TOKEN' })
    kernel
      .log('test')
      .warn(`somebody logs ${VALUE}`, { base64: Buffer.from(`u:${VALUE}`).toString('base64'), [VALUE]: 1 })
    for (const folder of [workspace, data])
      for (const form of [
        VALUE,
        Buffer.from(VALUE).toString('base64').slice(0, -4),
        Buffer.from(VALUE).toString('hex'),
      ])
        t.same(filesWith(folder, form), [])
    t.notMatch(daemon.logged.join(''), /tr0ub4dor/)
    t.match(daemon.logged.join(''), /somebody logs \{\{secret:TOKEN\}\}/)
    t.notMatch(daemon.logged.join(''), new RegExp(Buffer.from(VALUE).toString('base64').slice(4, 16)))
    t.notMatch(execFileSync('ps', ['axeww'], { encoding: 'utf8', maxBuffer: 1 << 26 }), /tr0ub4dor/)
    t.equal(statSync(join(data, 'secrets/secrets.vault')).mode & 0o777, 0o600)
  },
)

t.test("a value that looks like the daemon's own log lines breaks none of them", async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  meantInClear(daemon, 'output', 'every line of the log has these texts')
  await daemon.client.call('POST /secrets', { key: 'ODD', value: '"level":"warn"' })
  await daemon.client.call('POST /secrets', { key: 'KEY', value: '"message"' })
  daemon.kernel.log('test').warn('it goes on')
  t.match(JSON.parse(daemon.logged.at(-1)!), { level: 'warn', message: 'it goes on' })
})

t.test('values are masked in the logs by what comes after the answer, and replaced ones for a day', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  await daemon.client.call('POST /secrets', { key: 'TOKEN', value: VALUE })
  const first = await inner(daemon, 'secrets.values')
  t.same(first.values, [{ name: 'TOKEN', value: VALUE }])
  t.same(await inner(daemon, 'secrets.values'), first, 'nothing changed')
  await daemon.client.call('POST /secrets/generate', { key: 'TOKEN', replace: true })
  const { values, revision } = await inner(daemon, 'secrets.values')
  t.ok(revision > first.revision)
  t.equal(values.length, 2)
  t.same(values[1], { name: 'TOKEN', value: VALUE }, 'the replaced one is masked too')
  mock.timers.enable({ apis: ['Date'], now: Date.now() + 24 * 60 * 60_000 + 1000 })
  t.teardown(() => mock.timers.reset())
  const later = await inner(daemon, 'secrets.values')
  t.same(later.values.length, 1, 'for a day')
  t.ok(later.revision > revision)
})

t.test('only the owner sees a value, 20 times a minute', async t => {
  const { daemon, recorded } = await secretsWith(t)
  await openVaultOf(daemon)
  await daemon.client.call('POST /secrets', { key: 'A', value: VALUE })
  for (let n = 0; n < 20; n++) {
    const answer = await daemon.fetch('/secrets/reveal', { method: 'POST', body: '{"key":"A"}' })
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('cache-control'), 'no-store')
  }
  const last = await daemon.fetch('/secrets/reveal', { method: 'POST', body: '{"key":"A"}' })
  t.equal(last.status, 429)
  t.ok(Number(last.headers.get('retry-after')) > 0)
  t.equal(recorded.filter(({ type }) => type === 'secret.revealed').length, 20)
})

t.test('values of any kind are set, imported and resolved as they are', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  const unit = fc.oneof(
    fc.constantFrom('"', "'", '\n', '$', '#', '\\', ' ', '\r', '`', '='),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  )
  const value = fc.string({ unit, minLength: 1, maxLength: 40 }).map(text => text.toWellFormed().replaceAll('\0', '-'))
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(value, { minLength: 20, maxLength: 20 }), async values => {
      const [first, ...others] = values
      await daemon.client.call('POST /secrets', { key: 'K0', value: first! })
      const quoted = others.map((each, at) =>
        at % 2 && !each.includes("'")
          ? `K${at + 1}='${each}'`
          : `export K${at + 1}="${each
              .replace(/[\\"$]/g, '\\$&')
              .replaceAll('\n', '\\n')
              .replaceAll('\r', '\\r')}" # x`,
      )
      await daemon.client.call('POST /secrets/import', { text: quoted.join('\n'), replace: true })
      const names = values.map((_, at) => `K${at}`)
      const { text } = await inner(
        daemon,
        'secrets.resolve',
        use(names.map(name => `{{secret:${name}}}`).join('\u0000')),
      )
      t.same(text!.split('\u0000'), values)
      run += values.length
    }),
    { numRuns: 50, seed: 3 },
  )
  t.equal(run, 1000)
})

t.test('an import is all or nothing, keeps existing values, and returns names', async t => {
  const { daemon } = await secretsWith(t, { files: { 'a/.env': 'FROM_FILE=1\n' } })
  await openVaultOf(daemon)
  const { client, workspace } = daemon
  await client.call('POST /secrets', { key: 'A', value: 'stays' })
  const text = 'A=1\nB=2\nC=\nodd-name=3\nD=4\n'
  t.same(await client.call('POST /secrets/import', { text, only: ['A', 'B', 'C'] }), {
    added: ['B'],
    replaced: [],
    skipped: [
      { key: 'A', reason: 'exists' },
      { key: 'C', reason: 'empty' },
      { key: 'odd-name', reason: 'bad-name' },
      { key: 'D', reason: 'not-chosen' },
    ],
  })
  t.match(await client.call('POST /secrets/import', { text: 'A=new', replace: true }), { replaced: exactly('A') })
  t.match(await client.call('POST /secrets/import', { path: 'a/.env' }), { added: exactly('FROM_FILE') })
  t.equal(readFileSync(join(workspace, 'a/.env'), 'utf8'), 'FROM_FILE=1\n')
  mkdirSync(join(workspace, 'big'))
  writeFileSync(join(workspace, 'big/.env'), 'x'.repeat(1024 * 1024 + 1))
  t.match(await refusalOf(() => client.call('POST /secrets/import', { path: 'big/.env' })), { status: 413 })
  const many = Array.from({ length: 998 }, (_, at) => `N${at}=x`).join('\n')
  t.match(await refusalOf(() => client.call('POST /secrets/import', { text: many })), {
    status: 409,
    message: /1000 keys/,
  })
  t.same(await client.call('GET /secrets'), { keys: ['A', 'B', 'FROM_FILE'] })
})

t.test('values are made, rotated only when asked, and of a key pair the public half is answered', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  const { client } = daemon
  const make = async (recipe: Input<SecretsCalls, 'POST /secrets/generate'>['recipe']) => {
    const made = await client.call('POST /secrets/generate', { key: 'G', replace: true, ...(recipe && { recipe }) })
    return { ...made, ...(await inner(daemon, 'secrets.resolve', use('{{secret:G}}'))) }
  }
  t.match(await make(undefined), { rotated: false, text: /^[\w-]{32}$/ })
  t.match(await make({ kind: 'random', length: 512, alphabet: 'hex' }), { rotated: true, text: /^[0-9a-f]{512}$/ })
  t.match(await make({ kind: 'random', alphabet: 'alnum' }), { text: /^[A-Za-z0-9]{32}$/ })
  t.match(await make({ kind: 'random', alphabet: 'symbols', length: 64 }), { text: /^[!-~]{64}$/ })
  t.match(await make({ kind: 'words' }), { text: /^[a-z]{5}(-[a-z]{5}){5}$/ })
  t.match(await refusalOf(() => client.call('POST /secrets/generate', { key: 'G' })), {
    status: 409,
    message: /replace/,
  })
  const pair = await make({ kind: 'ssh-key', comment: 'ada@example' })
  t.match(pair.publicKey, /^ssh-ed25519 AAAA\S+ ada@example$/)
  const file = join(folderOf(t), 'key')
  writeFileSync(file, pair.text!, { mode: 0o600 })
  if (existsSync('/usr/bin/ssh-keygen'))
    t.equal(execFileSync('/usr/bin/ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' }).trim(), pair.publicKey)
  t.match(
    (await client.call('GET /secrets/inventory')).entries,
    exactly({ key: 'G', kind: 'generated', status: 'set' }),
  )
})

t.test('a key bound to hosts enters no text, one bound to personas only their turns', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  const { client } = daemon
  await client.call('POST /secrets', {
    key: 'API',
    value: VALUE,
    hosts: ['api.example.org', '*.Example.com'],
    personas: ['ada'],
  })
  t.match(
    (await client.call('GET /secrets/inventory')).entries,
    exactly({ hosts: exactly('api.example.org', '*.example.com'), personas: exactly('ada') }),
  )
  const bound = {
    refused:
      /\{\{secret:API\}\} is bound to api.example.org, \*.example.com, and this network is shared or has no proxy/,
  }
  for (const call of ['secrets.resolve', 'secrets.resolveCommand'] as const)
    t.match(await inner(daemon, call, { ...use('curl {{secret:API}}'), persona: 'ada' }), bound)
  await client.call('POST /secrets', { key: 'API', value: '__vaulted__', hosts: [] })
  t.same(await inner(daemon, 'secrets.resolve', { ...use('{{secret:API}}'), persona: 'ada' }), { text: VALUE })
  for (const persona of [undefined, 'bob'])
    t.same(await inner(daemon, 'secrets.resolve', { ...use('{{secret:API}}'), ...(persona && { persona }) }), {
      unknown: ['API'],
      names: [],
    })
  await client.call('POST /secrets', { key: 'API', value: 'a new value' })
  t.match(
    (await client.call('GET /secrets/inventory')).entries,
    exactly({ personas: exactly('ada') }),
    'a new value keeps it',
  )
  t.same((await client.call('GET /secrets/uses', {})).uses.length, 1, 'what was refused was not used')
})

t.test('each use is logged without the value, listed in pages, and survives the daemon', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  const { client, workspace, data } = daemon
  await client.call('POST /secrets', { key: 'A', value: VALUE })
  await client.call('POST /secrets', { key: 'B', value: 'value of b' })
  for (let n = 1; n <= 5; n++) {
    const text = `run ${n} {{secret:A}}${n % 2 ? '{{secret:B}}{{secret:A}}' : ''}`
    await inner(daemon, 'secrets.resolveCommand', {
      ...use(text),
      lane: n === 5 ? 'code' : 'shell',
      conversationId: `c${n}`,
    })
  }
  const seen: string[] = []
  for (let before: string | undefined, page = 0; page < 10; page++) {
    const { uses, next } = await client.call('GET /secrets/uses', { limit: 3, ...(before && { before }) })
    seen.push(...uses.map(({ name, detail }) => `${name} ${detail.slice(0, 5)}`))
    if (!next) break
    before = next
  }
  t.same(seen, ['B run 5', 'A run 5', 'A run 4', 'B run 3', 'A run 3', 'A run 2', 'B run 1', 'A run 1'])
  t.same((await client.call('GET /secrets/uses', { name: 'B' })).uses.length, 3)
  t.match(
    (await client.call('GET /secrets/uses', { conversationId: 'c4' })).uses,
    exactly({ by: 'conversation:c4', lane: 'shell' }),
  )
  t.same((await client.call('GET /secrets/uses', { lane: 'code' })).uses.length, 2)
  t.match(await refusalOf(() => client.call('GET /secrets/uses', { before: 'x' })), {
    status: 400,
    message: /^before: expected the next/,
  })
  t.match(
    (await client.call('GET /secrets/inventory')).entries,
    exactly({ key: 'A', lastUse: { lane: 'code' } }, { key: 'B' }),
  )
  await daemon.stop()
  const again = await spawnDaemon(t, { workspace, data })
  t.equal((await again.client.call('GET /secrets/uses', {})).uses.length, 8)
  t.same(await again.client.call('GET /secrets'), { keys: ['A', 'B'] })
})

t.test('fields of capabilities are kept apart from keys, and used by turns that have the capability', async t => {
  const github = { id: 'github', kind: 'cli', label: 'GitHub', config: {}, secrets: ['token'] }
  const { daemon } = await secretsWith(t, { fakes: { 'capabilities.records': () => ({ capabilities: [github] }) } })
  await openVaultOf(daemon)
  const { client } = daemon
  await inner(daemon, 'secrets.put', { name: 'github/token', value: 'ghp_value' })
  await inner(daemon, 'secrets.put', { name: 'ext/x/setting', value: 'of an extension' })
  await inner(daemon, 'secrets.put', { name: 'openai/key', value: 'of an account' })
  t.same(await client.call('GET /secrets'), { keys: [] })
  t.same(await inner(daemon, 'secrets.get', { name: 'github/token' }), { value: 'ghp_value' })
  t.same(await inner(daemon, 'secrets.get', { name: 'github/none' }), {})
  t.same(await inner(daemon, 'secrets.names'), {
    names: ['ext/x/setting', 'github/token', 'openai/key'],
    open: true,
    made: true,
    bound: false,
  })
  t.same(await inner(daemon, 'secrets.resolve', use('{{secret:github/token}}')), { text: 'ghp_value' })
  const none = { ...use('{{secret:github/token}}'), capabilities: [] }
  t.same(await inner(daemon, 'secrets.resolve', none), { unknown: ['github/token'], names: [] })
  for (const name of ['ext/x/setting', 'openai/key'])
    t.match(await inner(daemon, 'secrets.resolve', use(`{{secret:${name}}}`)), { unknown: exactly(name) })
  t.match(
    (await client.call('GET /secrets/inventory')).entries,
    exactly({ key: 'github', kind: 'capability', status: 'connected', label: 'GitHub', lastUse: {} }),
  )
  t.same(await client.call('POST /secrets/reveal', { key: 'github' }), { value: 'ghp_value' })
  t.same(await client.call('POST /secrets/reveal', { key: 'github', field: 'token' }), { value: 'ghp_value' })
  t.match(await refusalOf(() => client.call('POST /secrets/reveal', { key: 'openai/key' })), { status: 409 })
  t.match(await refusalOf(() => client.call('POST /secrets/reveal', { key: 'github', field: 'no' })), { status: 404 })
  await inner(daemon, 'secrets.move', { from: 'github', to: 'gitlab' })
  t.same(await inner(daemon, 'secrets.get', { name: 'gitlab/token' }), { value: 'ghp_value' })
  t.same(await inner(daemon, 'secrets.get', { name: 'github/token' }), {})
  await inner(daemon, 'secrets.drop', { name: 'gitlab/' })
  t.same((await inner(daemon, 'secrets.names')).names, ['ext/x/setting', 'openai/key'])
  await inner(daemon, 'secrets.drop', { name: 'openai/key' })
  t.same((await inner(daemon, 'secrets.names')).names, ['ext/x/setting'])
  t.match(await refusalOf(() => inner(daemon, 'secrets.put', { name: 'PLAIN', value: 'x' })), { status: 400 })
})

t.test('what a group requires and nobody stored is in the inventory as missing', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  const required = [
    { key: 'NEEDED', resourceId: 'web', type: 'process' },
    { key: 'NEEDED', resourceId: 'nightly', type: 'automation' },
  ]
  daemon.kernel.events.contribute('secrets.required', 'fake', async () => required)
  const entries = async () => (await daemon.client.call('GET /secrets/inventory')).entries
  const by = exactly({ resourceId: 'web', type: 'process' }, { resourceId: 'nightly', type: 'automation' })
  t.match(await entries(), exactly({ key: 'NEEDED', status: 'missing', requiredBy: by, revealable: false }))
  await daemon.client.call('POST /secrets', { key: 'NEEDED', value: VALUE })
  t.match(await entries(), exactly({ key: 'NEEDED', status: 'set', requiredBy: by, revealable: true }))
  await daemon.client.call('DELETE /secrets/{key}', { key: 'NEEDED' })
  t.match(await entries(), exactly({ key: 'NEEDED', status: 'missing' }))
})

t.test('of variables and headers of a connection each value is masked by itself too', t => {
  const texts = (value: string, kind: 'field' | 'env' = 'field') =>
    maskedValues({ name: 'x/env', value, kind }).map(({ value: text }) => text)
  t.strictSame(texts('A=one-value\nB = two-value '), ['A=one-value\nB = two-value ', 'one-value', 'two-value'])
  t.strictSame(texts('Authorization: Bearer tok-1'), ['Authorization: Bearer tok-1', 'Bearer tok-1', 'tok-1'])
  t.strictSame(texts('plain'), ['plain'])
  t.strictSame(texts('A=one-value', 'env'), ['A=one-value'], 'a plain key is one value')
  t.end()
})
