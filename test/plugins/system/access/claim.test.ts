import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { Deployment } from '../../../../kernel/config/deployment.js'
import { ownerOfPort } from '../../../../sdk/node/network/local/port-owner.js'
import { daemonWith, folderOf, makeWorkspace, root } from '../../../support/daemon.js'
import { startIssuer } from '../../../support/servers/issuer.js'
import { exactly } from '../../../support/lists.js'
import { ask, bearer, nonceOf, present, signInAs } from './sign-in-support.js'

const ADA = 'ada@example.org'
const BOB = 'bob@example.org'

const unclaimed = async (t: Test, identity: Deployment['identity'] = {}, more: Deployment = {}) => {
  const issuer = await startIssuer(t)
  const daemon = await daemonWith(t, ['system'], {
    deployment: { ...more, identity: { providers: [issuer.provider], ...identity } },
  })
  return { issuer, daemon }
}

t.test('of two simultaneous valid tokens of two people one makes the owner, the other is 403', async t => {
  const { issuer, daemon } = await unclaimed(t)
  const tokens = await Promise.all(
    [ADA, BOB].map(async email => issuer.token({ email, nonce: await nonceOf(daemon.url) })),
  )
  const answers = await Promise.all(tokens.map(token => present(daemon.url, token)))
  t.same(answers.map(({ status }) => status).sort(), [200, 403])
  const { body } = answers.find(({ status }) => status === 200)!
  t.equal(body.role, 'owner')
  t.match((await ask(daemon.url, 'GET /members', undefined, bearer(String(body.token)))).body, {
    members: exactly({ email: body.email, role: 'owner', bound: true }),
  })
  t.equal(
    ((await ask(daemon.url, 'GET /members', undefined, bearer(String(body.token)))).body.members as unknown[]).length,
    1,
  )
})

t.test('if an owner is configured, no other person becomes the owner', async t => {
  const { issuer, daemon } = await unclaimed(t, { expectedOwner: 'Ada@Example.org' })
  t.match(await signInAs(daemon, issuer, BOB), { status: 403, body: { message: /only the e-mail in/ } })
  t.match(await signInAs(daemon, issuer, ADA), { status: 200, body: { role: 'owner' } })
})

t.test(
  'with the rule code a valid token without the claim code is 409, with a wrong one 401, with the right one the owner',
  async t => {
    const { issuer, daemon } = await unclaimed(t, { claim: 'code' })
    const code = daemon.auth.claim!
    t.match(code, /^[A-Z2-7]{26}$/)
    const token = await issuer.token({ email: ADA, nonce: await nonceOf(daemon.url) })
    t.match(await present(daemon.url, token), { status: 409, body: { message: /claim code.*terminal/ } })
    t.match(await present(daemon.url, token, { claim: 'A'.repeat(26) }), {
      status: 401,
      body: { message: /unknown, used or expired/ },
    })
    t.match(
      await ask(daemon.url, 'POST /system/session', { claim: code }),
      { status: 401 },
      'a code without a person is refused',
    )
    const both = await Promise.all([
      present(daemon.url, token, { claim: code.toLowerCase() }),
      signInAs(daemon, issuer, BOB, { claim: code }),
    ])
    t.same(both.map(({ status }) => status).sort(), [200, 409], 'the second finds an owner')
    t.match(await signInAs(daemon, issuer, 'eve@example.org', { claim: code }), {
      status: 409,
      body: { message: /already has an owner/ },
    })
  },
)

t.test('wrong claim codes lock out no caller', async t => {
  const { issuer, daemon } = await unclaimed(t, { claim: 'code' })
  const token = await issuer.token({ email: ADA, nonce: await nonceOf(daemon.url) })
  for (let n = 0; n < 60; n++) t.equal((await present(daemon.url, token, { claim: `WRONG${n}` })).status, 401)
  t.match(await present(daemon.url, token, { claim: daemon.auth.claim! }), { status: 200, body: { role: 'owner' } })
})

t.test('requests through a tunnel need the code, also on loopback', async t => {
  const { issuer, daemon } = await unclaimed(t)
  const token = await issuer.token({ email: ADA, nonce: await nonceOf(daemon.url) })
  t.equal((await present(daemon.url, token, {}, { 'x-forwarded-for': '203.0.113.9' })).status, 409)
  t.equal((await present(daemon.url, token)).status, 200)
})

t.test(
  'a sandbox with a public name requires the code unless configured otherwise, and one that cannot be claimed has none',
  async t => {
    const { issuer, daemon } = await unclaimed(t, {}, { http: { hosts: ['sandbox.example'] } })
    t.equal((await signInAs(daemon, issuer, ADA)).status, 409)
    await daemon.stop()
    t.equal((await daemonWith(t, ['system'])).auth.claim, undefined)
  },
)

t.test(
  'the socket table shows the user of a local connection',
  { skip: process.platform !== 'linux' && 'only Linux shows it' },
  async t => {
    for (const host of ['127.0.0.1', '::1', '::']) {
      const server = createServer().listen(0, host)
      const bound = await once(server, 'listening').then(
        () => true,
        () => false,
      )
      if (!bound) {
        t.comment(`${host} is not there on this machine`)
        continue
      }
      const { port } = server.address() as { port: number }
      const connected = once(server, 'connection')
      const client = spawn(process.execPath, [
        '-e',
        `require('node:net').connect(${port}, '${host === '::' ? '127.0.0.1' : host}')`,
      ])
      const [socket] = await connected
      t.equal(await ownerOfPort(socket.remotePort, [port]), process.getuid?.(), host)
      t.equal(await ownerOfPort(socket.remotePort, [1]), undefined, 'a connection to another port')
      client.kill()
      server.close()
    }
    const table = join(t.testdir(), 'tcp')
    const row = (near: string, far: string, state: string, uid: number) =>
      `   0: ${near} ${far} ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 1 1 0 20 4 0 10 -1`
    writeFileSync(
      table,
      [
        'head',
        row('0100007F:9C40', '0100007F:2253', '06', 0),
        row('0100007F:9C40', '0A00000A:2253', '01', 7),
        row('0100007F:9C40', '0100007F:2253', '01', 1001),
      ].join('\n'),
    )
    t.equal(await ownerOfPort(0x9c40, [0x2253], [table]), 1001, 'the open connection to this machine')
    t.equal(await ownerOfPort(0x9c41, [0x2253], [table]), undefined)
  },
)

t.test(
  'another user of the machine needs the code',
  { skip: process.getuid?.() !== 0 && 'only root can act as another user' },
  async t => {
    const { issuer, daemon } = await unclaimed(t)
    const token = await issuer.token({ email: ADA, nonce: await nonceOf(daemon.url) })
    const script =
      `fetch('${daemon.url}/system/session', { method: 'POST', headers: { authorization: `
      + `'Bearer ${token}', 'content-type': 'application/json' }, body: '{}' }).then(async r => console.log(r.status))`
    const other = spawn(process.execPath, ['-e', script], {
      uid: 65534,
      gid: 65534,
      stdio: ['ignore', 'pipe', 'inherit'],
      cwd: '/',
    })
    const [status] = await once(createInterface(other.stdout), 'line')
    t.equal(status, '409')
    t.equal((await present(daemon.url, token)).status, 200)
  },
)

interface Started {
  readonly url: string
  readonly claim?: string
  readonly stderr: () => string
  stop(): Promise<void>
}

const start = async (t: Test, folder: string, json: boolean): Promise<Started> => {
  const args = [
    '--port',
    '0',
    '--workspace',
    join(folder, 'workspace'),
    '--data',
    join(folder, 'data'),
    '--config',
    join(folder, 'config.json'),
    ...(json ? ['--json'] : []),
  ]
  const child = spawn(process.execPath, [join(root, 'bundle', 'kernel', 'main.js'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', text => (errors += text))
  const [line] = await once(createInterface(child.stdout), 'line')
  const said = json
    ? (JSON.parse(String(line)) as { url: string; claim?: string })
    : { url: /http:\S+/.exec(String(line))![0] }
  if (!json) while (!errors.includes('claim code')) await once(child.stderr, 'data')
  return {
    ...said,
    stderr: () => errors,
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true })
    .map(name => join(folder, String(name)))
    .filter(path => statSync(path).isFile())

t.test('a new code is printed at every start until there is an owner, and is in no file', async t => {
  const folder = folderOf(t)
  makeWorkspace(join(folder, 'workspace'))
  const issuer = await startIssuer(t)
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({ identity: { claim: 'code', providers: [issuer.provider] } }),
  )
  const shown = await start(t, folder, false)
  const [, terminal = ''] = /claim code of this start is ([A-Z2-7]{26})/.exec(shown.stderr()) ?? []
  t.ok(terminal)
  await shown.stop()
  const first = await start(t, folder, true)
  t.match(first.claim, /^[A-Z2-7]{26}$/)
  t.not(first.claim, terminal)
  t.notMatch(first.stderr(), first.claim)
  for (const path of filesIn(join(folder, 'data'))) t.notMatch(readFileSync(path, 'latin1'), first.claim, path)
  t.equal((await signInAs(first, issuer, ADA)).status, 409)
  t.match(await signInAs(first, issuer, ADA, { claim: first.claim }), { status: 200, body: { role: 'owner' } })
  await first.stop()
  const second = await start(t, folder, true)
  t.equal(second.claim, undefined)
  t.match(await signInAs(second, issuer, ADA), { status: 200, body: { role: 'owner' } }, 'the owner is kept')
  await second.stop()
})

t.test('an invalid provider stops the start with a message', async t => {
  const { readConfig } = await import('../../../../kernel/config/config.js')
  const folder = folderOf(t)
  const file = join(folder, 'config.json')
  const good = { id: 'ours', label: 'Ours', issuer: 'https://id.example', audience: ['x'], clientId: 'x' }
  const read = (identity: object) => {
    writeFileSync(file, JSON.stringify({ identity }))
    return () => readConfig(['--workspace', folder, '--data', '/nonexistent-data', '--config', file], {})
  }
  t.match(read({ providers: [good] })().deployment.identity?.providers, exactly(good))
  for (const issuer of [
    'http://id.example',
    'https://',
    'id.example',
    'https://id.example?x=1',
    'https://id example',
    'ftp://x',
    'https://user@',
  ]) {
    t.throws(read({ providers: [{ ...good, issuer }] }), /issuer/, issuer)
  }
  t.match(
    read({ providers: [{ ...good, issuer: 'http://127.0.0.1:4000/a' }] })().deployment.identity?.providers?.length,
    1,
  )
  t.throws(read({ providers: [good, good] }), /two providers called ours/)
  t.throws(read({ providers: [{ ...good, audience: [] }] }), /audience/)
  t.throws(read({ expectedOwner: 'ada' }), /expectedOwner/)
  t.equal(read({ expectedOwner: 'Ada@Example.org' })().deployment.identity?.expectedOwner, 'Ada@Example.org')
})
