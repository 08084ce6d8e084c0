import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { writeExtension } from '../plugins/extensions/support.js'
import { daemonOf } from './network/user-daemon.js'
import { connected, head, rawRequest, walled } from './support.js'
import { USERS } from './users.js'

const ID = 'eve.holder'
const HELD = 'extensions/data/eve.holder/token'
/** Keeps its credential where the test finds it, which no honest program does. */
const PROGRAM = `
const { writeFileSync } = require('node:fs')
writeFileSync(process.env.SANDBOX_EXTENSION_DATA + '/token', process.env.SANDBOX_EXTENSION_TOKEN)
setInterval(() => {}, 1e6)
`
const manifest = (more: object = {}) => ({
  ...{ publisher: 'eve', name: 'holder', version: '1.0.0' },
  permissions: { daemon: ['GET /agents', 'GET /skills', 'POST /skills/*'] },
  contributes: { processes: [{ name: 'p', command: 'node p.cjs', autoStart: true }], ...more },
})
const LISTENER = {
  provider: 'chat',
  events: [{ type: 'said', label: 'Said' }],
  automation: { label: 'Chat', channel: { label: 'Channel', placeholder: 'x' }, starterPrompt: 'Go on.' },
}

const until = async <T>(what: string, find: () => Promise<T | undefined> | T | undefined): Promise<T> => {
  for (const end = Date.now() + 40_000; ;) {
    const found = await find()
    if (found !== undefined) return found
    if (Date.now() > end) throw new Error(`it did not become so: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

const approved = async ({ client }: RunningDaemon): Promise<void> => {
  const { digest } = await until('pending', async () =>
    (await client.call('GET /extensions')).pending.find(({ id }) => id === ID),
  )
  await client.call('POST /extensions/{id}/approve', { id: ID, digest })
}

/** The credential that the program got, another than before. */
const heldBy = ({ data }: RunningDaemon, before?: string): Promise<string> =>
  until('a credential', () => {
    const text = existsSync(join(data, HELD)) ? readFileSync(join(data, HELD), 'utf8') : ''
    return text.startsWith('sbe_') && text !== before ? text : undefined
  })

const statusOf = ({ url }: RunningDaemon, path: string, headers: { [name: string]: string }, method = 'GET') =>
  fetch(url + path, {
    method,
    headers: { ...(method === 'POST' && { 'content-type': 'application/json' }), ...headers },
    ...(method === 'POST' && { body: '{}' }),
  }).then(async answer => {
    await answer.body?.cancel()
    return answer.status
  })

/** What is done to an extension, after which no credential of before is valid. */
const ENDS: { readonly [what: string]: (daemon: RunningDaemon, own: () => void) => Promise<unknown> } = {
  'it is switched off': async ({ client }) => {
    await client.call('POST /extensions/{id}/enabled', { id: ID, enabled: false })
    return () => client.call('POST /extensions/{id}/enabled', { id: ID, enabled: true })
  },
  'its program is stopped': async ({ client }) => {
    await client.call('POST /extensions/{id}/processes/{name}/stop', { id: ID, name: 'p' })
    return () => client.call('POST /extensions/{id}/processes/{name}/start', { id: ID, name: 'p' })
  },
  'its code changes': async (daemon, own) => {
    writeExtension(daemon, 'holder', manifest(), { 'p.cjs': `${PROGRAM}// ${Math.random()}\n` })
    own()
  },
  'it asks for more': async (daemon, own) => {
    const more = manifest({ commands: [{ command: 'holder.more', title: 'More' }] })
    writeExtension(daemon, 'holder', more, { 'p.cjs': PROGRAM })
    own()
    return () => approved(daemon)
  },
  'its manifest stops parsing': async (daemon, own) => {
    writeExtension(daemon, 'holder', { publisher: 7 }, {})
    own()
    return () => {
      writeExtension(daemon, 'holder', manifest(), { 'p.cjs': PROGRAM })
      own()
    }
  },
  'it is removed': async ({ client }) => client.call('POST /extensions/{id}/remove', { id: ID }),
}

for (const [user, uid] of USERS)
  t.test(`${user}: the credential of an extension's program is its own, and ends with it`, walled(), async t => {
    const daemon = await daemonOf(t, uid, { 'README.md': '# work\n' })
    const own = () => execFileSync('chown', ['-R', `${uid}:${uid}`, daemon.workspace])
    writeExtension(daemon, 'holder', manifest(), { 'p.cjs': PROGRAM })
    own()
    await approved(daemon)
    let token = await heldBy(daemon)
    const as = (value: string, path = '/skills', method?: string) =>
      statusOf(daemon, path, { 'x-sandbox-extension': value }, method)

    await t.test('it reaches what the manifest names, as itself alone', async t => {
      t.equal(await as(token), 200)
      for (const [header, value] of [
        ['authorization', `Bearer ${token}`],
        ['x-sandbox-control', token],
        ['x-sandbox-turn', token],
        ['x-sandbox-run', token],
        ['cookie', `session=${token}`],
      ] as const)
        t.equal(await statusOf(daemon, '/skills', { [header]: value }), 401, header)
      for (const path of [`/skills?token=${token}`, `/skills?ticket=${token}`])
        t.equal(await statusOf(daemon, path, {}), 401)
      for (const [method, path] of [
        ['GET', '/settings'],
        ['GET', '/extensions'],
        ['GET', `/x/${ID}/a`],
        ['GET', '/events'],
        ['POST', '/skills'],
        ['POST', '/agent'],
        ['POST', '/system/ws-ticket'],
        ['POST', '/system/control/tokens'],
        ['GET', '/listeners/chat/state'],
        ['POST', '/listeners/chat/dispatch'],
      ] as const)
        t.equal(await as(token, path, method), 403, `${method} ${path}`)
      for (const claim of [
        'x-sandbox-caller',
        'x-sandbox-role',
        'x-forwarded-user',
        'x-remote-user',
        'x-forwarded-for',
      ])
        t.equal(await statusOf(daemon, '/settings', { 'x-sandbox-extension': token, [claim]: 'owner' }), 403, claim)
    })

    await t.test('no form of a request makes it more', async t => {
      const host = new URL(daemon.url).host
      const credential = ['x-sandbox-extension', token] as const
      for (const [what, bytes] of Object.entries({
        twice: head('GET', '/skills', [['host', host], credential, credential]),
        'two in one': head('GET', '/skills', [
          ['host', host],
          ['x-sandbox-extension', `${token}, ${token}`],
        ]),
        'another host': head('GET', '/skills', [['host', 'evil.example'], credential]),
        'two hosts': head('GET', '/skills', [['host', host], ['host', 'x'], credential]),
        'a length and chunks': `${head('POST', '/skills/x', [
          ['host', host],
          credential,
          ['content-length', '4'],
          ['transfer-encoding', 'chunked'],
        ])}0\r\n\r\nGET /settings HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
        'an upgrade': head('GET', '/events', [['host', host], credential, ['upgrade', 'websocket']]),
      })) {
        const { status, body } = await rawRequest(daemon.url, bytes)
        t.ok([400, 403, 404, 421].includes(status), `${what}: ${status}`)
        t.notMatch(body, /"network"|HTTP\/1\.1 200/, what)
      }
      const foreign = [['host', host], ['origin', 'http://evil.example'], credential] as const
      t.notMatch(
        (await rawRequest(daemon.url, head('GET', '/skills', foreign))).headers,
        /access-control-allow-origin/i,
      )
      const socket = await connected(t, daemon.url)
      socket.write(
        head('GET', `/system/terminal?session=web-1&ticket=${token}`, [
          ['host', host],
          credential,
          ['sec-websocket-version', '13'],
          ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
        ]).replace('connection: close', 'connection: upgrade\r\nupgrade: websocket'),
      )
      const first = await new Promise<Buffer>(resolve => socket.once('data', resolve))
      t.notMatch(first.toString(), /^HTTP\/1\.1 101/, 'no socket')
    })

    await t.test('it is in no log, file or command line of the daemon', async t => {
      const secret = token.split('.')[1]!
      t.notMatch(execFileSync('ps', ['-eo', 'args', 'ww'], { encoding: 'utf8' }), secret)
      t.notMatch(daemon.stderr(), secret)
      const files = readdirSync(daemon.data, { recursive: true, withFileTypes: true })
        .filter(file => file.isFile())
        .map(({ parentPath, name }) => join(parentPath, name))
      t.same(
        files.filter(path => readFileSync(path, 'latin1').includes(secret)),
        [join(daemon.data, HELD)],
      )
    })

    for (const [what, end] of Object.entries(ENDS))
      await t.test(`it is invalid once ${what}`, async t => {
        t.equal(await as(token), 200, 'it was valid')
        const back = await end(daemon, own)
        await until('invalid', async () => ((await as(token)) === 401 ? true : undefined))
        if (what === 'it is removed') return
        if (typeof back === 'function') await (back as () => Promise<unknown>)()
        const next = await heldBy(daemon, token)
        t.equal(await as(token), 401, 'the old one stays invalid')
        t.equal(await as(next), 200)
        token = next
      })
    rmSync(join(daemon.data, HELD), { force: true })
  })

for (const [user, uid] of USERS)
  t.test(
    `${user}: after a restart of the daemon a listener's program has a credential that is valid`,
    walled(),
    async t => {
      const first = await daemonOf(t, uid, { 'README.md': '# work\n' })
      const listening = { ...manifest({ listener: LISTENER }), permissions: {} }
      writeExtension(first, 'holder', listening, { 'p.cjs': PROGRAM })
      execFileSync('chown', ['-R', `${uid}:${uid}`, first.workspace])
      await approved(first)
      const token = await heldBy(first)
      const state = (daemon: RunningDaemon, value: string) =>
        statusOf(daemon, '/listeners/chat/state', { 'x-sandbox-extension': value })
      t.equal(await state(first, token), 200)
      t.equal(await statusOf(first, '/listeners/other/state', { 'x-sandbox-extension': token }), 403)
      t.equal(await first.terminate(), 0)
      const again = await spawnDaemon(t, {
        ...{ workspace: first.workspace, data: first.data },
        ...(uid !== process.getuid?.() && { user: uid }),
        env: {
          HOME: join(first.data, '..'),
          XDG_RUNTIME_DIR: join(first.data, '..'),
          XDG_STATE_HOME: join(first.data, '..'),
        },
      })
      const next = await heldBy(again, token)
      t.equal(await state(again, token), 401, 'that of before is invalid')
      t.equal(await state(again, next), 200)
      await again.client.call('POST /extensions/{id}/enabled', { id: ID, enabled: false })
      rmSync(join(again.data, HELD), { force: true })
    },
  )
