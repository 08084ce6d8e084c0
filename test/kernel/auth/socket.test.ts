import { chmod, mkdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { loginSocketPath, openLoginSocket } from '../../../kernel/auth/socket.js'
import type { OpenedSession } from '../../../sdk/kernel.js'
import { nameFor } from '../../../sdk/node/programs/peer-process.js'
import { listEnv, ownProgram, run } from '../../../sdk/node/programs/run.js'
import { askSocket } from '../../../sdk/cli/daemon/socket.js'
import { contextOf, mockedTime, refusalOf, started } from './memory.js'
import { exactly } from '../../support/lists.js'

const quiet = { warn: () => {} }

/** A folder with a short path, because the length of a socket's path is limited. */
const shortFolder = async (t: { teardown(work: () => unknown): void }): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 's-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const opened = async (t: { teardown(work: () => unknown): void }, path?: string) => {
  const at = path ?? join(await shortFolder(t), 'own', 'a.sock')
  const held = await started()
  const data = await shortFolder(t)
  const socket = await openLoginSocket({
    path: at,
    data,
    base: () => 'http://127.0.0.1:8787',
    auth: held.auth,
    log: quiet,
  })
  t.teardown(() => socket.close())
  return { ...held, data, path: socket.path, close: socket.close }
}

const LINUX = process.platform === 'linux'
const linux = () => ({ skip: !LINUX && 'only Linux shows processes' })

/** A connection after the greeting, and the name that the socket requests. */
const greeted = async (path: string): Promise<{ socket: Socket; prove: string }> => {
  const socket = createConnection(path).on('error', () => {})
  const [line] = await once(socket.setEncoding('utf8'), 'data')
  return { socket, prove: (JSON.parse(line as string) as { prove: string }).prove }
}

/** The answer to a request of a process that took the requested name. */
const shown = async (
  path: string,
  request: object,
  show = (prove: string) => nameFor(prove, path),
): Promise<string> => {
  const { socket, prove } = await greeted(path)
  if (LINUX) await writeFile('/proc/self/comm', show(prove))
  socket.end(`${JSON.stringify({ ...request, pid: process.pid })}\n`)
  return text(socket)
}

/** The whole answer of a socket to raw bytes, after its greeting. */
const raw = async (path: string, bytes: string | Buffer, end = false): Promise<string> => {
  const socket = createConnection(path)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
  socket.on('error', () => {})
  await once(socket, 'connect')
  if (end) socket.end(bytes)
  else socket.write(bytes)
  await once(socket, 'close')
  const answer = Buffer.concat(chunks).toString()
  return answer.slice(answer.indexOf('\n') + 1)
}

t.test('the path is short, of this user, and the same for the same data folder', async t => {
  const long = `/${'x'.repeat(90)}`
  const path = loginSocketPath('/data', { XDG_RUNTIME_DIR: '/run/user/1' })
  t.match(path, new RegExp(`^/run/user/1/sandbox-${process.getuid!()}/[0-9a-f]{16}\\.sock$`))
  t.equal(path, loginSocketPath('/data', { XDG_RUNTIME_DIR: '/run/user/1' }))
  t.not(path, loginSocketPath('/other', { XDG_RUNTIME_DIR: '/run/user/1' }))
  for (const XDG_RUNTIME_DIR of [long, 'relative', undefined]) {
    const other = loginSocketPath('/data', { XDG_RUNTIME_DIR })
    t.ok(Buffer.byteLength(other) <= 100 && other.startsWith('/'), other)
  }
})

t.test('socket and folder are accessible only to their user', async t => {
  const { path } = await opened(t)
  t.equal((await stat(path)).mode & 0o777, 0o600)
  t.equal((await stat(join(path, '..'))).mode & 0o777, 0o700)
})

t.test('a login request returns a code that signs in and the link with it', async t => {
  const { path, auth } = await opened(t)
  const { code, url } = await askSocket<{ code: string; url: string }>(path, { do: 'login' })
  t.equal(url, `http://127.0.0.1:8787/#login=${code}`)
  t.match(await auth.handlers['kernel.session.open']({ login: code, device: 'x', address: 'a' }, contextOf()), {
    session: { role: 'owner' },
  })
})

t.test('a session request returns a session that acts as the owner and does not claim the sandbox', async t => {
  const { path, auth, files } = await opened(t)
  const { token } = await askSocket<OpenedSession>(path, { do: 'session', device: 'cli' })
  t.match(auth.authenticate({ kind: 'bearer', value: token }, 'a'), { role: 'owner' })
  t.strictSame(files.writes, [])
})

t.test('every other request gets a message and the connection is closed', async t => {
  const { path, files } = await opened(t)
  const devices = [undefined, '', 7, 'x'.repeat(121)].map(device => ({ do: 'session', device }))
  for (const request of [{}, { do: 'delete' }, ...devices]) {
    t.match(
      JSON.parse(await shown(path, request)),
      { message: 'expected {"do":"login"}' },
      JSON.stringify(request).slice(0, 40),
    )
  }
  t.match(JSON.parse(await raw(path, '{"do":"login"}', true)), { message: 'expected one line' }, 'an endless line')
  t.strictSame(files.writes, [])
})

t.test('a request is refused unless its process took the requested name', linux(), async t => {
  const { path, files } = await opened(t)
  const pids = [process.pid, process.ppid, 1, 0, -1, 1.5, 2 ** 53, '1', [1], null]
  const lines = [
    '',
    '{}',
    'null',
    '[]',
    '7',
    '{"do":',
    '\0',
    '{"__proto__":{"do":"login"}}',
    '{"do":"login"}',
    ...pids.map(pid => JSON.stringify({ do: 'login', pid })),
  ]
  const refused = { reason: 'forbidden', message: 'expected a program of this process namespace' }
  for (const line of lines) t.match(JSON.parse(await raw(path, `${line}\n`)), refused, JSON.stringify(line))
  const { prove } = await greeted(path)
  for (const show of [() => 'node', (own: string) => own.slice(0, 15), () => nameFor(prove, path)]) {
    t.match(
      JSON.parse(await shown(path, { do: 'login' }, show)),
      { reason: 'forbidden' },
      'the name requested on another connection',
    )
  }
  t.strictSame(files.writes, [])
})

t.test('a socket that relays the challenge of another gets no answer to it', linux(), async t => {
  const { path, files } = await opened(t)
  const lure = join(await shortFolder(t), 'lure.sock')
  const answers: Promise<string>[] = []
  const server = createServer(async victim => {
    const { socket, prove } = await greeted(path)
    victim.write(`${JSON.stringify({ prove })}\n`)
    const [line] = await once(victim, 'data')
    socket.end(String(line))
    const answer = text(socket)
    answers.push(answer)
    victim.end(await answer)
  }).listen(lure)
  await once(server, 'listening')
  t.teardown(() => server.close())
  t.match(await refusalOf(() => askSocket(lure, { do: 'login' })), {
    status: 403,
    message: 'expected a program of this process namespace',
  })
  t.match(await answers[0], '"forbidden"')
  t.strictSame(files.writes, [])
})

/** The text of a program that sends a request to a socket and saves the answer. */
const asker = (path: string, out: string): string =>
  `import(${JSON.stringify(new URL('../../../sdk/cli/daemon/socket.js', import.meta.url).href)})
    .then(({ askSocket }) => askSocket(${JSON.stringify(path)}, { do: 'login' }))
    .then(({ code }) => 'code ' + code, error => error.message)
    .then(said => require('fs').writeFileSync(${JSON.stringify(out)}, said))`

t.test('a program that the daemon started, or a terminal server in its data folder, is refused', linux(), async t => {
  const { path, data } = await opened(t)
  const folder = await shortFolder(t)
  const child = spawn(process.execPath, ['-e', asker(path, join(folder, 'child'))], { stdio: 'inherit' })
  await once(child, 'exit')
  t.match(await readFile(join(folder, 'child'), 'utf8'), /that this sandbox started/)
  const tmux = await ownProgram('tmux')
  if (!tmux) return void t.comment('tmux is not there')
  await writeFile(join(folder, 'ask.cjs'), asker(path, join(folder, 'said')))
  for (const [cwd, said] of [
    [data, /that this sandbox started/],
    [folder, /^code /],
  ] as const) {
    const inTmux = (...args: string[]) => run(tmux, ['-S', 'tmux', '-f', '/dev/null', ...args], { cwd, env: listEnv() })
    t.teardown(() => inTmux('kill-server'))
    const command = `${process.execPath} ${join(folder, 'ask.cjs')}; ${tmux} wait-for -S over; sleep 60`
    await inTmux('new-session', '-d', command)
    await inTmux('wait-for', 'over')
    t.match(await readFile(join(folder, 'said'), 'utf8'), said)
  }
})

t.test('the name of a program is restored after its request', linux(), async t => {
  const { path } = await opened(t)
  await writeFile('/proc/self/comm', 'a test')
  const requests = [{ do: 'login' }, { do: 'session', device: '' }, { do: 'login' }] as const
  const asked = await Promise.allSettled(requests.map(request => askSocket(path, request)))
  t.same(
    asked.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  t.equal(await readFile('/proc/self/comm', 'utf8'), 'a test\n')
})

t.test('silent peers do not lock out others: the oldest is closed', async t => {
  const { path } = await opened(t)
  const first = createConnection(path).on('error', () => {})
  await once(first, 'data')
  const gone = new Promise(resolve => first.once('close', resolve))
  const silent: Socket[] = []
  t.teardown(() => silent.forEach(socket => socket.destroy()))
  for (let n = 0; n < 1200; n++) silent.push((await greeted(path)).socket)
  await gone
  t.ok((await askSocket<{ code: string }>(path, { do: 'login' })).code)
})

t.test('a peer that sends only occasional bytes is closed after 10 s', async t => {
  const { tick } = mockedTime(t)
  const { path } = await opened(t)
  const { socket } = await greeted(path)
  const gone = new Promise(resolve => socket.once('close', resolve))
  for (let n = 0; n < 10; n++) {
    socket.write('x')
    tick(1000)
  }
  await gone
  t.ok((await askSocket<{ code: string }>(path, { do: 'login' })).code)
})

t.test('a line over 4 KiB is not read to its end', async t => {
  const { path } = await opened(t)
  t.match(JSON.parse(await raw(path, Buffer.alloc(5000, 120))), { message: 'at most 4096 bytes' })
})

t.test('data after the first line is ignored', async t => {
  const { path, files } = await opened(t)
  const { socket, prove } = await greeted(path)
  if (LINUX) await writeFile('/proc/self/comm', nameFor(prove, path))
  const line = `${JSON.stringify({ do: 'login', pid: process.pid })}\n`
  socket.end(line + line)
  const answer = await text(socket)
  t.equal(answer.trimEnd().split('\n').length, 1)
  t.strictSame(files.writes, ['access'])
})

t.test('a line may arrive in pieces, and a peer that disconnects affects no other', async t => {
  const { path } = await opened(t)
  createConnection(path).on('connect', function (this: { destroy(): void }) {
    this.destroy()
  })
  const { socket, prove } = await greeted(path)
  socket.write('{"do":')
  t.ok((await askSocket<{ code: string }>(path, { do: 'login' })).code)
  if (LINUX) await writeFile('/proc/self/comm', nameFor(prove, path))
  socket.write(`"login","pid":${process.pid}}\n`)
  const [answer] = await once(socket, 'data')
  t.match(JSON.parse(String(answer)), { code: /^.{43}$/ })
})

t.test('the client gets a refusal as such, and a fixed message for a failure, which is logged', async t => {
  const path = join(await shortFolder(t), 'own', 'a.sock')
  const logged: unknown[] = []
  const off = await started({ identity: { claim: 'first', local: false } })
  const full = await started()
  full.files.full.add('access')
  for (const [auth, expected] of [
    [off.auth, { status: 403, message: 'identity.local' }],
    [full.auth, { status: 500, message: 'its log says why' }],
  ] as const) {
    const socket = await openLoginSocket({
      path,
      data: '/nonexistent',
      base: () => '',
      auth,
      log: { warn: (...what) => void logged.push(what) },
    })
    t.match(await refusalOf(() => askSocket(path, { do: 'login' })), expected)
    await socket.close()
  }
  t.match(logged, exactly(exactly('the login socket failed to answer', { error: /ENOSPC/ })))
})

t.test('a path without a socket is reported as such', async t => {
  const folder = await shortFolder(t)
  t.match(await refusalOf(() => askSocket(join(folder, 'no.sock'), { do: 'login' })), {
    status: 503,
    message: 'ENOENT',
  })
})

t.test('an answer that is not a line of JSON, or too long, is reported as such', async t => {
  const path = join(await shortFolder(t), 'odd.sock')
  const server = createServer(socket => socket.end('x'.repeat(70_000)))
  server.listen(path)
  await once(server, 'listening')
  t.match(await refusalOf(() => askSocket(path, { do: 'login' })), { status: 503, message: 'over 65536 bytes' })
  server.removeAllListeners('connection').on('connection', socket => socket.end('{}\nhello\n'))
  t.match(await refusalOf(() => askSocket(path, { do: 'login' })), {
    status: 503,
    message: 'expected one line of JSON',
  })
  server.close()
})

t.test('the socket of a killed daemon is replaced, that of a running one is not', async t => {
  const folder = await shortFolder(t)
  const path = join(folder, 'own', 'a.sock')
  await mkdir(join(folder, 'own'), { mode: 0o700 })
  const killed = spawn(process.execPath, [
    '-e',
    `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`,
  ])
  await once(killed.stdout, 'data')
  await t.rejects(opened(t, path), /another daemon answers here/)
  killed.kill('SIGKILL')
  await once(killed, 'exit')
  t.ok((await stat(path)).isSocket())
  await opened(t, path)
  t.ok((await askSocket<{ code: string }>(path, { do: 'login' })).code)
})

t.test('a folder that is a link, a file or accessible to others is refused, and left unchanged', async t => {
  const folder = await shortFolder(t)
  await mkdir(join(folder, 'real'), { mode: 0o700 })
  await symlink(join(folder, 'real'), join(folder, 'link'))
  await writeFile(join(folder, 'file'), 'x')
  await mkdir(join(folder, 'wide'))
  await chmod(join(folder, 'wide'), 0o755)
  for (const [name, found] of [
    ['link', 'something else'],
    ['file', 'something else'],
    ['wide', 'mode 755'],
  ] as const) {
    await t.rejects(
      opened(t, join(folder, name, 'a.sock')),
      { message: new RegExp(`expected a folder of this user with mode 700, found ${found}`) },
      name,
    )
  }
  t.equal(await readlink(join(folder, 'link')), join(folder, 'real'))
  await writeFile(join(folder, 'real', 'a.sock'), 'mine')
  await t.rejects(opened(t, join(folder, 'real', 'a.sock')), /expected a socket or nothing/)
  await t.rejects(opened(t, `/${'x'.repeat(100)}/a.sock`), /at most 100 bytes/)
})

t.test('closing disconnects waiting peers and removes the socket', async t => {
  const { path, close } = await opened(t)
  const waiting = createConnection(path).resume()
  await once(waiting, 'connect')
  await close()
  await once(waiting, 'close')
  await t.rejects(stat(path), { code: 'ENOENT' })
})
