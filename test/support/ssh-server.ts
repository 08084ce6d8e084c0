import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'

const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
const SSHD = FOLDERS.map(folder => join(folder, 'sshd')).find(path => existsSync(path))

/** The options of a test that needs a real ssh server: skipped where there is none, but never in a pipeline. */
export const withSshd = (): { skip?: string } =>
  SSHD === undefined && !process.env.CI
    ? { skip: 'this machine has no sshd (Debian: apt-get install openssh-server)' }
    : {}

const newKey = (path: string): string => {
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', path])
  return path
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise(closed => server.close(closed))
  return port
}

const listens = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** A real ssh server on this machine, which lets in the holders of some public keys as the user of this process. */
export const sshServer = async (t: Pick<Test, 'teardown'>, folder: string, publicKeys: readonly string[]) => {
  const port = await freePort()
  const user = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim()
  writeFileSync(join(folder, 'authorized'), publicKeys.map(key => `${key}\n`).join(''), { mode: 0o600 })
  // The place that Debian's start script makes.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const start = async (hostKey: string) => {
    const config = join(folder, 'sshd_config')
    writeFileSync(
      config,
      [
        `Port ${port}`,
        'ListenAddress 127.0.0.1',
        `HostKey ${hostKey}`,
        `AuthorizedKeysFile ${join(folder, 'authorized')}`,
        'PasswordAuthentication no',
        'KbdInteractiveAuthentication no',
        'UsePAM no',
        'StrictModes no',
        'PermitRootLogin prohibit-password',
        'PidFile none',
        'Subsystem sftp internal-sftp',
        '',
      ].join('\n'),
    )
    const server = spawn(SSHD!, ['-D', '-e', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] })
    const said: string[] = []
    server.stderr.on('data', piece => said.push(String(piece)))
    t.teardown(() => server.kill())
    while (!(await listens(port))) {
      if (server.exitCode !== null) throw new Error(`sshd ended with ${server.exitCode}: ${said.join('')}`)
      await delay(20)
    }
    return { server, said }
  }
  let running = await start(newKey(join(folder, 'host')))
  return {
    port,
    url: (path: string) => `ssh://${user}@localhost:${port}${path}`,
    words: () => running.said.join(''),
    pid: () => running.server.pid!,
    /** Starts it again with another host key, as one that takes its place would. */
    replace: async () => {
      running.server.kill()
      await once(running.server, 'close')
      running = await start(newKey(join(folder, 'host-2')))
    },
  }
}

/** A new key pair: the private half, and the line of the public one. */
export const sshKey = (
  folder: string,
  name: string,
  passphrase = '',
  type: 'ed25519' | 'rsa' = 'ed25519',
): { private: string; public: string } => {
  const path = join(folder, name)
  execFileSync('ssh-keygen', ['-q', '-t', type, '-N', passphrase, '-C', name, '-f', path])
  const read = (file: string) => execFileSync('cat', [file], { encoding: 'utf8' })
  return { private: read(path), public: read(`${path}.pub`).trim() }
}
