import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'

const FOLDERS = ['/usr/bin', '/usr/sbin', '/bin', '/sbin']

/** The options of a test that mounts: skipped where it cannot, but never in a pipeline. */
export const withMounts = (...programs: string[]): { skip?: string } => {
  if (process.env.CI) return {}
  const missing = ['umount', ...programs].find(name => FOLDERS.every(folder => !existsSync(join(folder, name))))
  if (missing) return { skip: `this machine has no ${missing}` }
  if (process.getuid?.() !== 0) return { skip: 'only the superuser mounts' }
  try {
    accessSync('/dev/fuse')
    return {}
  } catch {
    return { skip: 'this machine has no /dev/fuse' }
  }
}

/** Detaches everything below a folder, and waits until its carriers have ended. */
export const detachAll = async (root: string): Promise<void> => {
  for (const mount of mountsBelow(root)) spawnSync('umount', ['-l', '-i', mount])
  for (const late = Date.now() + 10_000; processesWith(root).length > 0 && Date.now() < late;) await delay(50)
}

/** The folders below another one at which something is mounted. */
export const mountsBelow = (root: string): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map(line => line.split(' ')[4] ?? '')
    .filter(folder => folder.startsWith(`${root}/`))

/** The processes with a text in their arguments, other than this one. */
export const processesWith = (text: string): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter(pid => {
      if (!pid || pid === process.pid) return false
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
      } catch {
        return false
      }
    })

/** A process with all its descendants. */
export const familyOf = (pid: number): number[] => {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return [pid, ...children.flatMap(child => familyOf(Number(child)))]
  } catch {
    return []
  }
}

/** A port of this machine on which nothing listens. */
export const unusedPort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise(closed => server.close(closed))
  return port
}

const started = async (t: Pick<Test, 'teardown'>, child: ChildProcess, port: number): Promise<ChildProcess> => {
  const said: string[] = []
  child.stderr?.on('data', piece => said.push(String(piece)))
  t.teardown(async () => {
    for (const pid of familyOf(child.pid!)) process.kill(pid, 'SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const there = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (there) return child
    if (child.exitCode !== null) throw new Error(`a server ended with ${child.exitCode}: ${said.join('')}`)
    await delay(20)
  }
}

/** A WebDAV server of a folder, with a user `ada` where there is a password. */
export const davServer = async (
  t: Pick<Test, 'teardown'>,
  folder: string,
  { password, tls, port: wanted }: { password?: string; tls?: { cert: string; key: string }; port?: number } = {},
) => {
  const port = wanted ?? (await unusedPort())
  const secure = tls ? ['--cert', tls.cert, '--key', tls.key] : []
  const child = spawn('rclone', ['serve', 'webdav', folder, '--addr', `127.0.0.1:${port}`, ...secure], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      RCLONE_CONFIG: '/dev/null',
      ...(password !== undefined && { RCLONE_USER: 'ada', RCLONE_PASS: password }),
    },
  })
  return { child: await started(t, child, port), url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/` }
}

/** A certificate that no authority vouches for, with its SHA-256. */
export const selfSigned = (folder: string): { cert: string; key: string; sha256: string } => {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const names = ['-subj', '/CN=share', '-addext', 'subjectAltName=IP:127.0.0.1']
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync('openssl', [...args, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const shown = execFileSync('openssl', ['x509', '-in', cert, '-noout', '-fingerprint', '-sha256'], {
    encoding: 'utf8',
  })
  return { cert, key, sha256: shown.trim().split('=')[1]!.replaceAll(':', '').toLowerCase() }
}

/** An SMB server on this machine with one share, `files`, and the user `root`. */
export const smbServer = async (t: Pick<Test, 'teardown'>, shared: string, password: string) => {
  const port = await unusedPort()
  // Its sockets have paths of at most 108 bytes.
  const folder = mkdtempSync(join(tmpdir(), 'smb-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const places = ['private', 'lock', 'state', 'cache', 'pid', 'ncalrpc'].map(name => [
    name === 'private' || name === 'ncalrpc' ? `${name} dir` : `${name} directory`,
    join(folder, name),
  ])
  for (const [, place] of places) mkdirSync(place!, { recursive: true })
  const config = join(folder, 'smb.conf')
  const lines = [
    '[global]',
    'server role = standalone server',
    `smb ports = ${port}`,
    'interfaces = 127.0.0.1',
    'bind interfaces only = yes',
    ...places.map(([name, place]) => `${name} = ${place}`),
    `passdb backend = tdbsam:${join(folder, 'private', 'passdb.tdb')}`,
    'disable netbios = yes',
    'load printers = no',
    '[files]',
    `path = ${shared}`,
    'read only = no',
    'comment = the files',
  ]
  writeFileSync(config, lines.map(line => `${line}\n`).join(''))
  const setPassword = (value: string) =>
    execFileSync('smbpasswd', ['-c', config, '-s', '-a', 'root'], { input: `${value}\n${value}\n`, stdio: 'pipe' })
  setPassword(password)
  const args = ['-F', '--no-process-group', '-s', config, '-l', folder]
  await started(t, spawn('smbd', args, { stdio: ['ignore', 'ignore', 'pipe'] }), port)
  return { port, setPassword }
}

/** A server that answers the NULL call of NFS version 4, on an address of this machine. */
export const nfsServer = async (t: Pick<Test, 'teardown'>, address: string) => {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', piece => {
      const reply = Buffer.alloc(28)
      reply.writeUInt32BE(0x8000_0018, 0)
      piece.copy(reply, 4, 4, 8)
      reply.writeUInt32BE(1, 8)
      socket.write(reply)
    })
  }).listen(2049, address)
  await once(server, 'listening')
  t.teardown(() => void server.close())
}
