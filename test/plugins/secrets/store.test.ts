import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import fc from 'fast-check'
import t from 'tap'
import type { StoreConfig } from '../../../plugins/secrets/contract.js'
import { systemKeyring } from '../../../plugins/secrets/vault/keyring.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, inGit, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { filesWith, inner, openVaultOf, secretsWith } from './support.js'

const FILES = { '.gitignore': '.env*\n', 'README.md': '# work\n', 'kept/.env.tracked': 'A=1\n' }
const DOTENV: StoreConfig = { kind: 'dotenv', path: '.env' }
const FILE: StoreConfig = { kind: 'vault', unlock: 'file' }
const PASSPHRASE = 'correct horse battery'
const BY_PASSPHRASE: StoreConfig = { kind: 'vault', unlock: 'passphrase', passphrase: PASSPHRASE }
const HARD = { ONE: 'plain', TWO: 'a "b" $c\n#d \\ \'e\'\r\n', THREE: '-----BEGIN X-----\nabc\n-----END X-----\n' }

/** Another daemon on the same folders. */
const again = async (daemon: Support, t: Parameters<typeof daemonWith>[0]): Promise<Support> => {
  await daemon.stop()
  return daemonWith(t, ['secrets'], { workspace: daemon.workspace, data: daemon.data })
}

const fill = async ({ client }: Support): Promise<void> => {
  for (const [key, value] of Object.entries(HARD)) await client.call('POST /secrets', { key, value })
}

const valuesOf = async (daemon: Support): Promise<{ [name: string]: string }> => {
  const { keys } = await daemon.client.call('GET /secrets')
  const lines = await Promise.all(
    keys.map(async key => {
      const asked = { text: `{{secret:${key}}}`, lane: 'code' as const, detail: '' }
      return [key, (await inner(daemon, 'secrets.resolve', asked)).text!] as const
    }),
  )
  return Object.fromEntries(lines)
}

t.test('values move from a vault into a .env file and back, and none is lost', async t => {
  const { daemon, recorded } = await secretsWith(t, { files: FILES })
  const { client, workspace, data } = daemon
  const env = join(workspace, '.env')
  writeFileSync(env, '# mine\nOWN=1\n')
  await client.call('POST /secrets/store', FILE)
  await fill(daemon)
  await inner(daemon, 'secrets.put', { name: 'github/token', value: 'field value' })
  await client.call('POST /secrets', { key: 'ONE', value: '__vaulted__', personas: ['ada'] })
  const [key] = readdirSync(join(data, 'secrets/keys'))
  t.equal(statSync(join(data, 'secrets/keys', key!)).mode & 0o777, 0o600)
  t.same(await client.call('POST /secrets/store', DOTENV), { ok: true, moved: 4 })
  t.match(readFileSync(env, 'utf8'), /^# mine\nOWN=1\n/)
  t.equal(statSync(env).mode & 0o777, 0o600)
  t.match(await client.call('GET /secrets/store'), { kind: 'dotenv', path: '.env', keys: 4, locked: false })
  t.match((await client.call('GET /secrets/inventory')).entries[0], {
    key: 'ONE',
    storedAt: '.env',
    personas: exactly('ada'),
  })
  t.same(await inner(daemon, 'secrets.get', { name: 'github/token' }), { value: 'field value' })
  t.notMatch(readFileSync(env, 'utf8'), 'field value', 'fields stay encrypted')
  t.notOk(readdirSync(join(data, 'secrets/keys')).includes(key!), 'the key of the old vault is gone')
  await client.call('POST /secrets', { key: 'ONE', value: '__vaulted__', personas: [] })
  t.same(await valuesOf(daemon), { ...HARD, OWN: '1' })

  t.same(await client.call('POST /secrets/store', DOTENV), { ok: true, moved: 0 }, 'the same choice again')
  t.same(await client.call('POST /secrets/store', FILE), { ok: true, moved: 5 })
  t.same(await valuesOf(daemon), { ...HARD, OWN: '1' })
  t.equal(readFileSync(env, 'utf8'), '# mine\n', 'the values are gone from the file')
  const next = await again(daemon, t)
  t.same(await valuesOf(next), { ...HARD, OWN: '1' })
  const moves = recorded.filter(({ type }) => type === 'secret.store').map(({ extra }) => extra?.['moved'])
  t.same(moves, [0, 4, 0, 5])
})

t.test('a .env file as a store is read anew when somebody edits it, and keeps what it does not hold', async t => {
  const { daemon } = await secretsWith(t, { files: FILES })
  const { client, workspace } = daemon
  const env = join(workspace, '.env')
  await client.call('POST /secrets/store', DOTENV)
  t.notOk(existsSync(env), 'nothing is stored yet')
  await client.call('POST /secrets', { key: 'A', value: 'first value' })
  t.equal(readFileSync(env, 'utf8'), "A='first value'\n")
  writeFileSync(env, '# by hand\nexport A=second\nB=third\n')
  t.same(await valuesOf(daemon), { A: 'second', B: 'third' })
  t.same(
    (await inner(daemon, 'secrets.values')).values.map(({ value }) => value),
    ['second', 'third'],
  )
  await client.call('DELETE /secrets/{key}', { key: 'B' })
  await client.call('POST /secrets', { key: 'C', value: 'x' })
  t.equal(readFileSync(env, 'utf8'), '# by hand\nexport A=second\nC=x\n')
  writeFileSync(env, 'A="open\n')
  const locked = { status: 503, message: /\.env, line 1: expected a closing "/ }
  t.match(await refusalOf(() => client.call('POST /secrets', { key: 'C', value: 'y' })), locked)
  t.match(await refusalOf(() => client.call('POST /secrets/reveal', { key: 'A' })), locked)
  t.equal(readFileSync(env, 'utf8'), 'A="open\n')
  writeFileSync(env, 'A=mended\n')
  t.same(await valuesOf(daemon), { A: 'mended' })
})

t.test('a .env file that has another name is not overwritten under that', async t => {
  const { daemon } = await secretsWith(t, { files: FILES })
  const { client, workspace } = daemon
  await client.call('POST /secrets/store', DOTENV)
  await client.call('POST /secrets', { key: 'A', value: 'one' })
  linkSync(join(workspace, '.env'), join(workspace, '.env.link'))
  await client.call('POST /secrets/store', FILE)
  t.notOk(existsSync(join(workspace, '.env')))
  t.equal(readFileSync(join(workspace, '.env.link'), 'utf8'), 'A=one\n')
})

t.test('a path that git would publish, or outside the workspace, is no store', async t => {
  const { daemon } = await secretsWith(t, { files: FILES })
  const { client, workspace, data } = daemon
  inGit(workspace, 'add', '-f', 'kept/.env.tracked')
  inGit(workspace, 'commit', '-q', '--allow-empty', '-m', 'tracked')
  symlinkSync(data, join(workspace, '.env-data'))
  mkdirSync(join(workspace, '.env.folder'))
  writeFileSync(join(workspace, '.env.broken'), 'A="\n')
  const refused: [path: string, message: RegExp][] = [
    ['kept/.env.tracked', /is tracked by git/],
    ['open.txt', /is not ignored by git/],
    ['../.env', /inside the workspace/],
    ['/etc/.env', /inside the workspace/],
    ['.env-data/x', /inside the workspace/],
    ['.git/.env', /belongs to git/],
    ['gone/.env', /gone\/.env, whose folder is not there/],
    ['.env.folder', /no file/],
    ['.env.broken', /line 1/],
  ]
  for (const [path, message] of refused)
    t.match(
      await refusalOf(() => client.call('POST /secrets/store', { kind: 'dotenv', path })),
      { status: 422, message },
      path,
    )
  t.match(await client.call('GET /secrets/store'), { configured: false })
  await openVaultOf(daemon)
  await client.call('POST /secrets', { key: 'A', value: 'mine' })
  writeFileSync(join(workspace, '.env'), 'A=theirs\n')
  t.match(await refusalOf(() => client.call('POST /secrets/store', DOTENV)), {
    status: 409,
    message: /has other values for A/,
  })
  t.match(await client.call('GET /secrets/store'), { kind: 'vault' })
  t.equal(readFileSync(join(workspace, '.env'), 'utf8'), 'A=theirs\n')
})

t.test('a store with a passphrase is locked after a start, and the tenth wrong one is the last', async t => {
  const { daemon } = await secretsWith(t)
  await daemon.client.call('POST /secrets/store', BY_PASSPHRASE)
  await daemon.client.call('POST /secrets', { key: 'A', value: 'the value' })
  t.same(await daemon.client.call('POST /secrets/store', BY_PASSPHRASE), { ok: true, moved: 0 })
  t.same(filesWith(daemon.data, PASSPHRASE), [])
  const next = await again(daemon, t)
  const { client } = next
  const locked = { status: 503, message: /^the store of secrets is locked: its owner opens it with the passphrase/ }
  for (const work of [
    () => client.call('POST /secrets', { key: 'B', value: 'x' }),
    () => client.call('POST /secrets/generate', { key: 'B' }),
    () => client.call('POST /secrets/import', { text: 'B=1' }),
    () => client.call('POST /secrets/reveal', { key: 'A' }),
    () => client.call('DELETE /secrets/{key}', { key: 'A' }),
    () => client.call('POST /secrets/store', FILE),
    () => inner(next, 'secrets.get', { name: 'github/token' }),
  ])
    t.match(await refusalOf(work), locked)
  t.match(await inner(next, 'secrets.resolve', { text: '{{secret:A}}', lane: 'shell', detail: '' }), {
    refused: /is locked/,
  })
  t.same(await inner(next, 'secrets.names'), { names: ['A'], open: false, made: true, bound: false })
  t.same((await inner(next, 'secrets.values')).values, [])
  t.same(await client.call('GET /secrets'), { keys: ['A'] })
  t.match((await client.call('GET /secrets/inventory')).entries, exactly({ key: 'A', status: 'set' }))
  t.match(await client.call('GET /secrets/store'), {
    locked: true,
    unlock: 'passphrase',
    keys: 1,
    reason: /passphrase/,
  })
  const wrong = () => client.call('POST /secrets/store', { ...BY_PASSPHRASE, passphrase: 'not the right one' })
  for (let n = 0; n < 10; n++) t.match(await refusalOf(wrong), { status: 403, message: /not that of the store/ })
  t.match(await refusalOf(wrong), { status: 429 })
  t.match(
    await refusalOf(() => client.call('POST /secrets/store', BY_PASSPHRASE)),
    { status: 429 },
    'the right one too',
  )
  mock.timers.enable({ apis: ['Date'], now: Date.now() + 10 * 60_000 + 1000 })
  t.teardown(() => mock.timers.reset())
  t.same(await client.call('POST /secrets/store', BY_PASSPHRASE), { ok: true, moved: 0 })
  t.same(await valuesOf(next), { A: 'the value' })
  t.same(await client.call('POST /secrets/store', FILE), { ok: true, moved: 1 })
  t.same(await valuesOf(await again(next, t)), { A: 'the value' }, 'and without it after the move')
})

t.test('a vault whose key is gone or that was changed stays closed and says so', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  await daemon.client.call('POST /secrets', { key: 'A', value: 'the value' })
  const vault = join(daemon.data, 'secrets/secrets.vault')
  const bytes = readFileSync(vault)
  await daemon.stop()
  for (const at of [bytes.length - 1, bytes.length - 40, 30]) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    writeFileSync(vault, changed)
    const next = await daemonWith(t, ['secrets'], { workspace: daemon.workspace, data: daemon.data }).catch(
      () => undefined,
    )
    t.match(await refusalOf(() => next!.client.call('POST /secrets/reveal', { key: 'A' })), { status: 503 }, String(at))
    t.match(await refusalOf(() => next!.client.call('POST /secrets', { key: 'A', value: 'x' })), { status: 503 })
    await next!.stop()
    t.same(readFileSync(vault), changed, 'it is left as it is')
  }
  writeFileSync(vault, bytes)
  const back = await daemonWith(t, ['secrets'], { workspace: daemon.workspace, data: daemon.data })
  t.same(await valuesOf(back), { A: 'the value' })
})

/** A program that speaks as `secret-tool` does, and keeps what it is given in a folder. */
const TOOL = `#!/bin/sh
printf '%s\\n' "$*" >> "$(dirname "$0")/calls"
[ -e "$(dirname "$0")/closed" ] && { echo 'Cannot autolaunch D-Bus without X11' >&2; exit 1; }
do=$1; for key; do :; done
file=$(dirname "$0")/ring-$key
case $do in
  store) cat > "$file" ;;
  lookup) [ -e "$file" ] && cat "$file" ;;
  clear) rm -f "$file" ;;
esac
`

t.test('a key is kept in a key ring by its program, never in an argument', async t => {
  const folder = folderOf(t)
  const tool = join(folder, 'secret-tool')
  writeFileSync(tool, TOOL)
  chmodSync(tool, 0o755)
  const ring = systemKeyring(async () => tool, 'libsecret')
  t.equal(await ring.missing(), undefined)
  t.equal(await ring.find('a1'), undefined)
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 32, maxLength: 32 }), async bytes => {
      const key = Buffer.from(bytes)
      await ring.store('a1', key)
      t.same(await ring.find('a1'), key)
      t.notMatch(readFileSync(join(folder, 'calls'), 'utf8'), key.toString('hex'))
    }),
    { numRuns: 5 },
  )
  await ring.remove('a1')
  t.equal(await ring.find('a1'), undefined)
  writeFileSync(join(folder, 'closed'), '')
  t.match(await ring.missing(), /does not answer secret-tool: Cannot autolaunch/)
  t.match(await refusalOf(() => ring.store('a2', Buffer.alloc(32, 1))), { status: 424 })
  const none = systemKeyring(async () => undefined, 'libsecret')
  t.match(await none.missing(), /expected the program secret-tool.*libsecret-tools/)
  t.match(await refusalOf(() => none.store('a', Buffer.alloc(32))), { status: 501 })
})

t.test('without a key ring program that choice is refused with how to install it, and nothing changes', async t => {
  const { daemon } = await secretsWith(t)
  await openVaultOf(daemon)
  await daemon.client.call('POST /secrets', { key: 'A', value: 'the value' })
  const { choices } = await daemon.client.call('GET /secrets/store')
  const ring = choices.find(({ unlock }) => unlock === 'keyring')!
  if (ring.available) return t.comment('this machine has one')
  t.match(ring.reason, /secret-tool|security/)
  const keyring: StoreConfig = { kind: 'vault', unlock: 'keyring' }
  t.match((await refusalOf(() => daemon.client.call('POST /secrets/store', keyring))).status, /^(501|424)$/)
  t.match(await daemon.client.call('GET /secrets/store'), { unlock: 'file', keys: 1 })
  t.same(await valuesOf(await again(daemon, t)), { A: 'the value' })
})
