import { hash } from 'node:crypto'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { addressesOf } from '../../../sdk/node/network/outbound.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { KnownHosts } from '../../../sdk/node/transport/known-hosts.js'
import {
  missingSshProgram,
  missingSshSentence,
  nameOfServer,
  sshLogin,
  type SshSecret,
} from '../../../sdk/node/transport/ssh-login.js'
import { runWalled } from '../../../sdk/node/wall/wall.js'
import type { SshServer } from './server.js'
import { shownServer, SshFailure, sshFailure } from './words.js'

const LOOKUP_MS = 10_000
const MEET_MS = 30_000
const MOST_OUTPUT = 64 * 1024
/** The exit code with which ssh reports its own failures (ssh(1), EXIT STATUS). */
const OF_SSH = 255

type Deps = Pick<Host, 'place' | 'call'>

/** A checked address of a server; its name is resolved once, so that it cannot stand for another one later. */
export const sshAddressOf = async (
  host: Pick<Host, 'call'>,
  server: SshServer,
  signal: AbortSignal,
): Promise<string> => {
  const { listeners } = await host.call('kernel.listeners')
  const name = server.host.includes(':') ? `[${server.host}]` : server.host
  try {
    const soon = AbortSignal.any([signal, AbortSignal.timeout(LOOKUP_MS)])
    const found = await addressesOf(new URL(`http://${name}:${server.port}`), { near: true, listeners }, soon)
    const addresses = found.map(({ address }) => address)
    return addresses.find(address => isIP(address) === 4) ?? addresses[0]!
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal) throw new SshFailure('unreachable', `${error.message}: name another server`)
    const why = SENTENCES[codeOf(error) ?? ''] ?? 'its name could not be looked up'
    throw new SshFailure('unreachable', `${shownServer(server)} could not be found: ${why}; check the name`)
  }
}

/** Signs in to a server and runs `true` there; keeps the host key that it shows first. */
export const meetServer = async (
  host: Deps,
  server: SshServer,
  secret: SshSecret,
  known: KnownHosts,
  signal: AbortSignal,
): Promise<void> => {
  const missing = await missingSshProgram()
  if (missing !== undefined) refuse('missing-program', missingSshSentence(missing))
  const { workspace, data, hidden, grants } = host.place
  const address = await sshAddressOf(host, server, signal)
  const folder = await attemptFolder(host.place.folder)
  try {
    const where = { ...server, kind: 'ssh' as const, url: '' }
    await using login = await sshLogin(folder, where, address, secret, known)
    const spec = {
      workspace: await realpath(workspace),
      data,
      hide: hidden,
      grants,
      cwd: '/',
      exposed: [folder],
      sealed: true,
      env: listEnv(login.env),
    }
    const args = ['-T', '-p', String(server.port), '-l', server.user, '--', server.host, 'true']
    const result = await runWalled(spec, 'sh', ['-c', `${login.command} "$@"`, 'ssh', ...args], {
      signal,
      timeoutMs: MEET_MS,
      maxBytes: MOST_OUTPUT,
    })
    const said = result.stderr
    if (result.timedOut) throw sshFailure('timed out', server, secret.kind)
    if (result.code === OF_SSH) throw sshFailure(said, server, secret.kind)
    if (result.code !== 0)
      throw new SshFailure(
        'unauthorized',
        `${server.user} signs in to ${shownServer(server)} but runs no commands there `
          + `(${lastLine(result) || `exit code ${result.code}`}): give the user a shell`,
      )
    await login.pin()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const lastLine = ({ stdout, stderr }: { stdout: Buffer; stderr: string }): string =>
  (stderr.trim() || stdout.toString().trim()).split('\n').at(-1)!.slice(0, 200)

const ATTEMPTS = 'ssh-attempts'

const attemptFolder = async (folder: string): Promise<string> => {
  const base = join(folder, ATTEMPTS)
  await mkdir(base, { recursive: true, mode: 0o700 })
  return realpath(await mkdtemp(join(base, 'a-')))
}

/** Removes the files of handshakes that the end of the daemon cut off. */
export const sweepAttempts = (folder: string): Promise<void> =>
  rm(join(folder, ATTEMPTS), { recursive: true, force: true })

/** The fingerprint of the host key that is kept of a server, as ssh shows it. */
export const hostKeyFingerprint = (known: KnownHosts, server: SshServer): string | undefined => {
  const [, type, key] = known.linesOf(nameOfServer(server))[0]?.split(' ') ?? []
  if (type === undefined || key === undefined) return undefined
  return `${type} SHA256:${hash('sha256', Buffer.from(key, 'base64'), 'base64').replace(/=+$/, '')}`
}
