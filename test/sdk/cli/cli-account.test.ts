import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../../support/browser/browser.js'
import { folderOf } from '../../support/daemon.js'
import { startAccountServer, type AccountServer } from '../../support/servers/account-server.js'
import { going, type RunOptions, sandbox } from './cli-process.js'

/** The data folder of a daemon with a provider `acme`, of which some fields are changed. */
const daemonOf = async (t: Test, server: AccountServer, acme: { auth?: object } = {}): Promise<string> => {
  const folder = folderOf(t)
  const providers = join(folder, 'definitions')
  mkdirSync(providers, { recursive: true })
  writeFileSync(join(providers, 'acme.json'), JSON.stringify(server.definition('acme', acme)))
  const program = [join(import.meta.dirname, 'model-daemon.js'), folder, 'accounts', 'providers']
  const child = spawn(process.execPath, program, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MODELS: JSON.stringify({ providers }) },
  })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  await Promise.race([once(child.stdout, 'data'), exited.then(() => Promise.reject(new Error('the daemon ended')))])
  return join(folder, 'data')
}

t.test('an account is added with a key, listed and removed from the command line', async t => {
  const server = await startAccountServer(t)
  const env = { SANDBOX_DATA: await daemonOf(t, server) }
  const account = (args: string[], options: RunOptions = {}) => sandbox(['account', ...args], { env, ...options })
  t.match(await account([]), { code: 0, out: /^no accounts; sandbox providers/ })
  t.match(await account(['list', 'a', 'b']), { code: 2, err: /expected account list \[PROVIDER\]/ })
  t.match(await account(['list', 'acme']), { code: 0, out: /^no account is connected; next: sandbox account add acme/ })
  const add = ['add', 'acme', '--flow', 'key', '--label', 'Team', '--key-stdin']
  t.match(await account(add, { input: '\n' }), { code: 2, err: /expected the key, found nothing/ })
  t.match(await account(add, { input: 'sk-a-key-that-is-unknown\n' }), { code: 1, err: /refused the key/ })
  const added = await account(add, { input: `${[...server.keys][0]}\n` })
  t.match(added, { code: 0, out: /^connected Team \(\w+\)\nnext: sandbox run "TEXT" --agent acme\n$/ })
  const id = /\((\w+)\)/.exec(added.out)![1]!
  t.match(await account(['list', 'acme']), { code: 0, out: new RegExp(`${id} +Team +connected`) })
  t.match(await account([]), { code: 0, out: new RegExp(`acme +${id} +Team +connected`) })
  t.match(await account(['remove', 'acme', id]), { code: 0, out: `disconnected ${id}\n` })
  t.match(await account(['list', 'acme']), { out: /^no account/ })
})

t.test('a code, and the address that a browser elsewhere ended at, are given on standard input', async t => {
  const server = await startAccountServer(t)
  for (const [flow, redirectUri, read] of [
    ['redirect', undefined, (landed: URL) => landed.href],
    [
      'code',
      `${server.url}/shown`,
      (landed: URL) => `${landed.searchParams.get('code')}#${landed.searchParams.get('state')}`,
    ],
  ] as const) {
    const env = { SANDBOX_DATA: await daemonOf(t, server, { auth: { ...(redirectUri && { redirectUri }) } }) }
    const running = going(t, ['account', 'add', 'acme', '--flow', flow, '--key-stdin'], { env, gives: true })
    await until(() => /then give the (code|address)/.test(running.err()))
    const landed = await server.approve(/open (\S+)/.exec(running.err())![1]!, `${flow}@example.org`)
    running.give(`${read(new URL(landed))}\n`)
    t.equal(await running.ended, 0)
    t.match(running.out(), new RegExp(`^connected ${flow}@example\\.org`))
  }
})

t.test('a sign-in on another device is waited for', async t => {
  const server = await startAccountServer(t)
  const env = { SANDBOX_DATA: await daemonOf(t, server, { auth: { flows: ['device'] } }) }
  const running = going(t, ['account', 'add', 'acme'], { env })
  await until(() => /and enter [A-Z]{4}-[A-Z]{4}/.test(running.err()))
  await server.approve(/open (\S+)/.exec(running.err())![1]!, 'ada@example.org')
  t.equal(await running.ended, 0)
  t.match(running.out(), /^connected ada@example\.org/)
})
