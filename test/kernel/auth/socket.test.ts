import { chmod, mkdir, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { loginSocketPath, openLoginSocket } from '../../../kernel/auth/socket.js'
import type { OpenedSession } from '../../../sdk/kernel.js'
import { askSocket } from '../../../sdk/node/socket.js'
import { contextOf, refusalOf, started } from './memory.js'

const quiet = { warn: () => {} }

/** A short folder: the system cuts the path of a socket off where a test's own folder is deep. */
const shortFolder = async (t: { teardown(work: () => unknown): void }): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 's-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const opened = async (t: { teardown(work: () => unknown): void }, path?: string) => {
  const at = path ?? join(await shortFolder(t), 'own', 'a.sock')
  const held = await started()
  const socket = await openLoginSocket({ path: at, base: () => 'http://127.0.0.1:8787', auth: held.auth, log: quiet })
  t.teardown(() => socket.close())
  return { ...held, path: socket.path, close: socket.close }
}

/** Everything a socket answers to bytes sent as they are. */
const raw = async (path: string, bytes: string | Buffer, end = false): Promise<string> => {
  const socket = createConnection(path)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
  socket.on('error', () => {})
  await once(socket, 'connect')
  if (end) socket.end(bytes)
  else socket.write(bytes)
  await once(socket, 'close')
  return Buffer.concat(chunks).toString()
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

t.test('socket and folder are open to their user alone', async t => {
  const { path } = await opened(t)
  t.equal((await stat(path)).mode & 0o777, 0o600)
  t.equal((await stat(join(path, '..'))).mode & 0o777, 0o700)
})

t.test('asking to log in answers a code that signs in and the link that carries it', async t => {
  const { path, auth } = await opened(t)
  const { code, url } = await askSocket<{ code: string; url: string }>(path, { do: 'login' })
  t.equal(url, `http://127.0.0.1:8787/#login=${code}`)
  t.match(await auth.handlers['kernel.session.open']({ login: code, device: 'x', address: 'a' }, contextOf()), { session: { role: 'owner' } })
})

t.test('asking for a session answers one that acts as the owner and claims nothing', async t => {
  const { path, auth, files } = await opened(t)
  const { token } = await askSocket<OpenedSession>(path, { do: 'session', device: 'cli' })
  t.match(auth.authenticate({ kind: 'bearer', value: token }, 'a'), { role: 'owner' })
  t.strictSame(files.writes, [])
})

t.test('everything else is answered with a message and the end', async t => {
  const { path, files } = await opened(t)
  const lines = ['\n', '{}\n', 'null\n', '[]\n', '7\n', '{"do":"session"}\n', '{"do":"session","device":""}\n', '{"do":"session","device":7}\n',
    `{"do":"session","device":"${'x'.repeat(121)}"}\n`, '{"do":"delete"}\n', '{"do":\n', '\0\n', '{"__proto__":{"do":"login"}}\n']
  for (const line of lines) t.match(JSON.parse(await raw(path, line)), { message: 'expected {"do":"login"}' }, JSON.stringify(line.slice(0, 40)))
  t.match(JSON.parse(await raw(path, '{"do":"login"}', true)), { message: 'expected one line' }, 'a line that does not end')
  t.strictSame(files.writes, [])
})

t.test('a line over 4 KiB is not read to its end', async t => {
  const { path } = await opened(t)
  t.match(JSON.parse(await raw(path, Buffer.alloc(5000, 120))), { message: 'at most 4096 bytes' })
})

t.test('what comes after the first line is ignored', async t => {
  const { path, files } = await opened(t)
  const answer = await raw(path, '{"do":"login"}\n{"do":"login"}\n')
  t.equal(answer.trimEnd().split('\n').length, 1)
  t.strictSame(files.writes, ['access'])
})

t.test('a line may come in pieces, and a peer that vanishes harms nobody', async t => {
  const { path } = await opened(t)
  createConnection(path).on('connect', function (this: { destroy(): void }) { this.destroy() })
  const socket = createConnection(path)
  await once(socket, 'connect')
  socket.write('{"do":')
  t.ok((await askSocket<{ code: string }>(path, { do: 'login' })).code)
  socket.write('"login"}\n')
  const [answer] = await once(socket, 'data')
  t.match(JSON.parse(String(answer)), { code: /^.{43}$/ })
})

t.test('a refusal reaches the asker as one, a failure as a fixed sentence and the log', async t => {
  const path = join(await shortFolder(t), 'own', 'a.sock')
  const logged: unknown[] = []
  const off = await started({ identity: { claim: 'first', local: false } })
  const full = await started()
  full.files.full.add('access')
  for (const [auth, expected] of [[off.auth, { status: 403, message: 'identity.local' }], [full.auth, { status: 500, message: 'its log says why' }]] as const) {
    const socket = await openLoginSocket({ path, base: () => '', auth, log: { warn: (...what) => void logged.push(what) } })
    t.match(await refusalOf(() => askSocket(path, { do: 'login' })), expected)
    await socket.close()
  }
  t.match(logged, [['the login socket failed to answer', { error: /ENOSPC/ }]])
})

t.test('nobody at the path is said as such', async t => {
  const folder = await shortFolder(t)
  t.match(await refusalOf(() => askSocket(join(folder, 'no.sock'), { do: 'login' })), { status: 503, message: 'ENOENT' })
})

t.test('an answer that is no line of JSON, or too long, is said as such', async t => {
  const path = join(await shortFolder(t), 'odd.sock')
  const server = createServer(socket => socket.once('data', () => socket.end('x'.repeat(70_000))))
  server.listen(path)
  await once(server, 'listening')
  t.match(await refusalOf(() => askSocket(path, { do: 'login' })), { status: 503, message: 'over 65536 bytes' })
  server.removeAllListeners('connection').on('connection', socket => socket.once('data', () => socket.end('hello\n')))
  t.match(await refusalOf(() => askSocket(path, { do: 'login' })), { status: 503, message: 'expected one line of JSON' })
  server.close()
})

t.test('the socket of a daemon that was killed is replaced, that of a living one is not', async t => {
  const folder = await shortFolder(t)
  const path = join(folder, 'own', 'a.sock')
  await mkdir(join(folder, 'own'), { mode: 0o700 })
  const killed = spawn(process.execPath, ['-e', `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`])
  await once(killed.stdout, 'data')
  await t.rejects(opened(t, path), /another daemon answers here/)
  killed.kill('SIGKILL')
  await once(killed, 'exit')
  t.ok((await stat(path)).isSocket())
  await opened(t, path)
  t.ok((await askSocket<{ code: string }>(path, { do: 'login' })).code)
})

t.test('a folder that is a link, a file or open to others is refused, and what lies there stays', async t => {
  const folder = await shortFolder(t)
  await mkdir(join(folder, 'real'), { mode: 0o700 })
  await symlink(join(folder, 'real'), join(folder, 'link'))
  await writeFile(join(folder, 'file'), 'x')
  await mkdir(join(folder, 'wide'))
  await chmod(join(folder, 'wide'), 0o755)
  for (const [name, found] of [['link', 'something else'], ['file', 'something else'], ['wide', 'mode 755']] as const) {
    await t.rejects(opened(t, join(folder, name, 'a.sock')), { message: new RegExp(`expected a folder of this user with mode 700, found ${found}`) }, name)
  }
  t.equal(await readlink(join(folder, 'link')), join(folder, 'real'))
  await writeFile(join(folder, 'real', 'a.sock'), 'mine')
  await t.rejects(opened(t, join(folder, 'real', 'a.sock')), /expected a socket or nothing/)
  await t.rejects(opened(t, `/${'x'.repeat(100)}/a.sock`), /at most 100 bytes/)
})

t.test('closing ends waiting peers and takes the socket away', async t => {
  const { path, close } = await opened(t)
  const waiting = createConnection(path)
  await once(waiting, 'connect')
  await close()
  await once(waiting, 'close')
  await t.rejects(stat(path), { code: 'ENOENT' })
})
