import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createClient } from '../../../sdk/client.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { answersOf } from '../support.js'
import { inTime } from '../../support/in-time.js'

const MIB = 1024 * 1024

const placed = (t: Test): { workspace: string; data: string } => {
  const folder = folderOf(t)
  makeWorkspace(join(folder, 'workspace'))
  return { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
}

interface Refused {
  readonly status?: number
  readonly message?: string
}
const outcome = async (asked: Promise<unknown>): Promise<Refused> =>
  asked.then(
    () => ({ status: 200 }),
    ({ status, message }: Refused) => ({ status: status!, message: message! }),
  )

/** Calls over one persistent connection. */
const keptOpen = (t: Test, url: string, token: string) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: 60_000 })
  t.teardown(() => agent.destroy())
  return (
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; body: { message?: string; run?: string } }> =>
    new Promise((resolve, reject) => {
      const asked = request(
        url + path,
        { method, agent, headers: { 'x-sandbox-control': token, ...(body && { 'content-type': 'application/json' }) } },
        res => {
          let text = ''
          res
            .setEncoding('utf8')
            .on('data', part => (text += part))
            .on('end', () => resolve({ status: res.statusCode!, body: JSON.parse(text) }))
        },
      )
      asked.on('error', reject)
      asked.end(body && JSON.stringify(body))
    })
}

t.test(
  'without file descriptors calls and turns are refused with a message, nothing is lost, and later calls succeed',
  async t => {
    const { workspace, data } = placed(t)
    const daemon = await spawnDaemon(t, { workspace, data, starter: ['prlimit', '--nofile=120:120'] })
    const { token } = await daemon.client.call('POST /system/control/tokens', { label: 'land', scope: 'land' })
    const ask = keptOpen(t, daemon.url, token)
    t.equal((await ask('GET', '/agents')).status, 200)
    await runTurn(createClient({ url: daemon.url, token }), 'before', 'say before')
    t.equal((await ask('GET', '/agents')).status, 200)

    const { hostname, port } = new URL(daemon.url)
    const open = (): number => readdirSync(`/proc/${daemon.pid}/fd`).length
    const held: Socket[] = []
    for (let tries = 0; tries < 300 && open() < 119; tries++) {
      const socket = createConnection(Number(port), hostname).on('error', () => {})
      held.push(socket)
      await Promise.race([once(socket, 'connect'), once(socket, 'close')])
    }
    // The system connects before a busy daemon accepts.
    for (const end = Date.now() + 10_000; open() < 117 && Date.now() < end;) await delay(20)
    t.ok(open() >= 117, `${open()} files are open`)

    const taken: { conversationId: string; messageId: string; run: string }[] = []
    for (let at = 0; at < 6; at++) {
      const [conversationId, messageId] = [`full-${at}`, `m-full-${at}`]
      const { status, body } = await ask('POST', '/agent', {
        conversationId,
        messageId,
        prompt: 'run echo hello\nsay done',
        isolated: at % 2 === 0,
      })
      if (status === 200) taken.push({ conversationId, messageId, run: body.run! })
      else t.match({ status, body }, { status: 503, body: { message: /limit of open files/ } })
      t.ok([200, 503].includes((await ask('GET', '/agents')).status), 'reads are answered')
      t.ok([200, 503].includes((await ask('POST', '/agents/before/rename', { title: `title ${at}` })).status))
    }
    for (const socket of held) socket.destroy()

    const land = createClient({ url: daemon.url, token })
    for (const { conversationId, messageId, run } of taken) {
      t.match(
        (await framesOf(land, conversationId, { run }).all()).at(-1)?.event.kind,
        /done|error/,
        'every accepted turn ended',
      )
      t.equal((await land.call('POST /agent', { conversationId, messageId, prompt: 'say x' })).run, run)
    }
    t.equal((await runTurn(land, 'after', 'run echo hello\nsay done', { isolated: true })).at(-1)?.kind, 'done')
    t.match(JSON.stringify((await land.call('GET /agents/{id}/transcript', { id: 'before' })).messages), /before/)
    t.equal(await daemon.terminate(), 0)
  },
)

t.test(
  'a workspace that vanishes and returns: calls that need it are refused, the daemon survives, and work continues',
  async t => {
    const { workspace, data } = placed(t)
    const { client, url } = await spawnDaemon(t, { workspace, data })
    await runTurn(client, 'work', 'write work.txt\n| work\nsay done', { isolated: true })
    renameSync(workspace, `${workspace}.away`)
    const asked = [
      client.call('POST /agent', { conversationId: 'shared', prompt: 'write x.txt\n| x' }),
      client.call('POST /agent', { conversationId: 'private', prompt: 'write x.txt\n| x', isolated: true }),
      client.call('GET /agents/{id}/diff', { id: 'work' }),
      client.call('POST /agents/{id}/land', { id: 'work' }),
      client.call('POST /agents/{id}/sync', { id: 'work' }),
      client.call('GET /settings'),
      client.call('POST /settings/patch', { set: { agentRetentionDays: 5 } }),
      client.call('GET /agents'),
      client.call('GET /info'),
    ]
    for (const [at, { status, message = '' }] of (await Promise.all(asked.map(outcome))).entries())
      t.ok(status! < 500, `${at}: ${status} ${message}`)
    t.equal((await fetch(`${url}/health`)).status, 200)
    for (const id of ['shared', 'private'])
      await client.call('POST /agent/stop', { conversationId: id }).catch(() => {})
    t.notOk(existsSync(join(workspace, 'x.txt')), 'no workspace was created')
    const madeUp = existsSync(workspace)
    t.notOk(madeUp, 'its folder was not created')
    if (!madeUp) renameSync(`${workspace}.away`, workspace)
    t.equal((await runTurn(client, 'again', 'write again.txt\n| again\nsay done')).at(-1)?.kind, 'done')
    t.equal(readFileSync(join(workspace, 'again.txt'), 'utf8'), 'again\n')
    t.match(await client.call('POST /agents/{id}/land', { id: 'work' }), { landed: true })
    t.equal(readFileSync(join(workspace, 'work.txt'), 'utf8'), 'work\n')
  },
)

t.test('nothing lands in a read-only workspace, not even partly, and settings are unchanged', async t => {
  const { workspace, data } = placed(t)
  // Permissions do not stop the superuser; a read-only mount does.
  const readOnly =
    process.getuid?.() === 0
      ? spawnSync('mount', ['--bind', workspace, workspace]).status === 0
      : (chmodSync(workspace, 0o755), false)
  if (readOnly) t.teardown(() => void spawnSync('umount', ['--lazy', workspace]))
  const { client, url } = await spawnDaemon(t, { workspace, data })
  await runTurn(client, 'work', 'write work.txt\n| work\nsay done', { isolated: true })
  const settings = await client.call('GET /settings')
  const close = () =>
    readOnly
      ? spawnSync('mount', ['-o', 'remount,bind,ro', workspace]).status === 0
      : (chmodSync(workspace, 0o555), true)
  // It is busy while git writes there for the warm copy.
  while (!close()) await delay(20)
  const before = readdirSync(workspace).sort()
  const frames = await runTurn(client, 'shared', 'write x.txt\n| x\nsay done')
  t.match(answersOf(frames), exactly({ ok: false, text: /./ }), 'the turn gets the write error')
  const asked = [
    client.call('POST /agents/{id}/land', { id: 'work' }),
    client.call('POST /settings/patch', { set: { agentRetentionDays: 5 } }),
  ]
  for (const { status, message } of await Promise.all(asked.map(outcome))) {
    t.ok(status! >= 400 && status! < 500 && message!.length > 10, `${status} ${message}`)
  }
  t.same(readdirSync(workspace).sort(), before, 'nothing is written partly')
  t.same(await client.call('GET /settings'), settings)
  t.equal((await fetch(`${url}/health`)).status, 200)
  if (readOnly) spawnSync('mount', ['-o', 'remount,bind,rw', workspace])
  else chmodSync(workspace, 0o755)
  t.match(await client.call('POST /agents/{id}/land', { id: 'work' }), { landed: true })
  t.match(await client.call('POST /settings/patch', { set: { agentRetentionDays: 5 } }), {
    settings: { agentRetentionDays: 5 },
  })
})

const residentOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

t.test('very slow readers delay no other client, and their answers are not buffered', async t => {
  const { workspace, data } = placed(t)
  writeFileSync(join(workspace, 'large.txt'), 'line\n'.repeat(200_000))
  const { client, url, pid } = await spawnDaemon(t, { workspace, data })
  const { hostname, port, host } = new URL(url)
  const { token } = await client.call('POST /system/control/tokens', { label: 'slow', scope: 'read' })
  await runTurn(client, 'long', `repeat 40 say ${'x'.repeat(20_000)}`)
  const before = residentOf(pid)
  const slow: Socket[] = []
  for (let at = 0; at < 48; at++) {
    const socket = createConnection({
      port: Number(port),
      host: hostname,
      onread: { buffer: Buffer.alloc(1), callback: () => false },
    }).on('error', () => {})
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    // Pipelines many requests on one connection: each is served when the previous answer was read.
    socket.write(
      `GET /agents/long/transcript HTTP/1.1\r\nhost: ${host}\r\nx-sandbox-control: ${token}\r\n\r\n`.repeat(20),
    )
    slow.push(socket)
  }
  const began = performance.now()
  t.equal((await runTurn(client, 'others', 'say hello')).at(-1)?.kind, 'done')
  for (let at = 0; at < 20; at++) t.equal((await fetch(`${url}/health`)).status, 200)
  t.ok(inTime(began, 5000), 'others are served as usual')
  // All answers at once are 768 MiB; what the collector has not freed yet counts too.
  t.ok(residentOf(pid) - before < 256 * MIB, `${Math.round((residentOf(pid) - before) / MIB)} MiB more for 48 of them`)
})
