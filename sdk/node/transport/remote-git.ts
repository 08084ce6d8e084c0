import { writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { Host } from '../../host.js'
import { Refusal, refuse } from '../../refusal.js'
import { SENTENCES } from '../network/failure-words.js'
import { addressesOf, wayTo, type Way } from '../network/outbound.js'
import { proxyWords, type UpstreamProxy } from '../network/upstream.js'
import { deploymentAuthorities, systemAuthorities } from '../network/authority.js'
import { git } from '../programs/git.js'
import { everyGitdir } from '../wall/gitdirs.js'
import type { WallSpec } from '../wall/spec.js'
import { credentialPipe, type CredentialWay, type RemoteCredential } from './credential-pipe.js'
import type { RemoteAddress, ServerAddress } from './remote-address.js'
import { remoteFailure, type RemoteFailure } from './remote-words.js'

/** The facts about the machine for walls. */
export type WallBase = Pick<WallSpec, 'workspace' | 'data' | 'hide' | 'grants'>

/** One run of git against a remote. */
export interface TransferOrder {
  readonly address: RemoteAddress
  /** Its arguments, including the address. */
  readonly args: (url: string) => readonly string[]
  /** Its own writable folder, visible only to it. */
  readonly folder: string
  /** The working directory of git; left out: that folder. */
  readonly dir?: string
  readonly env?: { readonly [name: string]: string }
  /** Other folders of the daemon that it sees. */
  readonly exposed?: readonly string[]
  /** The paths below the workspace's `.sandbox/` that it may write. */
  readonly writable?: readonly string[]
  readonly progress?: (piece: Buffer) => void
  readonly signal?: AbortSignal
}

/** The outcome; no failure: it was done. */
export interface TransferAnswer {
  readonly text: string
  readonly stderr: string
  readonly failure?: RemoteFailure
}

/** The time limits for a remote. */
export interface TransferTimes {
  /** Without progress. */
  readonly stallMs: number
  /** In all. */
  readonly limitMs: number
}

/** The dependencies of `RemoteGit`. */
export interface RemoteGitDeps {
  readonly host: Pick<Host, 'call' | 'signal'>
  readonly wall: WallBase
  /** The stored value for a server whose address has no password; asked over TLS alone. */
  readonly passwordFor: (server: ServerAddress) => Promise<string | undefined>
  /** Prepares ssh for a server at a checked address; left out: ssh uses what the deployment shows behind the wall. */
  readonly ssh?: (
    server: ServerAddress,
    folder: string,
    address: string,
  ) => Promise<CredentialWay | { readonly failure: RemoteFailure }>
  readonly times?: TransferTimes
}

const TIMES: TransferTimes = { stallMs: 120_000, limitMs: 600_000 }
const LOOKUP_MS = 30_000
const MOST_EXIT_CODE = 255

/** The user name if the address has none: forges accept any with a token. */
const ANY_USER = 'x-access-token'

const ANY_EXIT = Array.from({ length: MOST_EXIT_CODE + 1 }, (_, code) => code)

/** Runs git against remotes: behind the wall, with a deadline, a credential and addresses that were checked. */
export class RemoteGit {
  readonly #deps: RemoteGitDeps
  readonly #times: TransferTimes

  constructor(deps: RemoteGitDeps) {
    this.#deps = deps
    this.#times = deps.times ?? TIMES
  }

  /** Runs git against a remote. */
  async run(order: TransferOrder): Promise<TransferAnswer> {
    const { address, args, folder, dir, env = {}, exposed = [], writable = [], progress, signal } = order
    const { host, wall } = this.#deps
    const server = address.kind === 'local' ? undefined : address
    const stall = new AbortController()
    const limit = AbortSignal.timeout(this.#times.limitMs)
    const over = AbortSignal.any([host.signal, stall.signal, limit, ...(signal ? [signal] : [])])
    const late = () => stall.abort(new Error('stalled'))
    let timer = setTimeout(late, this.#times.stallMs)
    const said = (piece: Buffer) => {
      clearTimeout(timer)
      timer = setTimeout(late, this.#times.stallMs)
      progress?.(piece)
    }
    try {
      const way: WayToServer | FailedTransfer = server
        ? await this.#wayTo(server, folder, over)
        : { url: address.url, settings: [], env: {} }
      if ('failure' in way) return way
      const ready = server && (await this.#ready(server, folder, way.address))
      if (ready && 'failure' in ready) return { text: '', stderr: '', failure: ready.failure }
      await using credential = ready
      // A repository of the workspace may keep its git folder with the daemon.
      const lent = server ? [] : await everyGitdir(wall.data)
      const answer = await git(dir ?? folder, [...way.settings, ...(credential?.settings ?? []), ...args(way.url)], {
        env: {
          ...way.env,
          ...credential?.env,
          ...env,
          GIT_ALLOW_PROTOCOL: server?.kind ?? 'file',
        },
        signal: over,
        said,
        timeoutMs: this.#times.limitMs,
        wall: { ...wall, exposed: [...new Set([folder, ...exposed, ...lent])], writable },
        ok: ANY_EXIT,
      })
      await credential?.pin?.()
      const { text, stderr } = answer
      if (answer.code === 0) return { text, stderr }
      const target = server?.host ?? 'it'
      const reason = way.proxy && proxyWords(way.proxy, target, stderr)
      return {
        ...{ text, stderr },
        failure: reason === undefined ? remoteFailure(stderr, target) : { code: 'unreachable', reason },
      }
    } catch (error) {
      if (stall.signal.aborted)
        return unreachable(`${server?.host ?? 'it'} did not answer for ${this.#times.stallMs / 1000} s`)
      if (signal?.aborted && !host.signal.aborted) return unreachable('it took longer than there was time')
      if (limit.aborted) return unreachable(`it did not end within ${this.#times.limitMs / 1000} s`)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** The settings that limit git to checked addresses of the host. */
  async #wayTo(server: ServerAddress, folder: string, signal: AbortSignal): Promise<WayToServer | FailedTransfer> {
    const { host, port, kind } = server
    const name = host.includes(':') ? `[${host}]` : host
    const { listeners } = await this.#deps.host.call('kernel.listeners')
    try {
      const soon = AbortSignal.any([signal, AbortSignal.timeout(LOOKUP_MS)])
      const reach = { near: true, listeners }
      if (kind === 'http' || kind === 'https') {
        const way = await wayTo(new URL(`${kind}://${name}:${port}`), reach, soon)
        return await webWayOf(server, way, folder)
      }
      const found = await addressesOf(new URL(`http://${name}:${port}`), reach, soon)
      const addresses = found.map(({ address }) => address)
      if (server.kind === 'ssh' && this.#deps.ssh) {
        const address = addresses.find(each => isIP(each) === 4) ?? addresses[0]!
        return { url: server.url, settings: [], env: {}, address }
      }
      return wayOf(server, addresses)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof Refusal) return unreachable(error.message)
      const { code = '', message } = error as NodeJS.ErrnoException
      return unreachable(`${name} could not be asked for ${kind}: ${SENTENCES[code] ?? message}`)
    }
  }

  /** The credential for the server: the password of its address, a stored one, or what ssh needs. */
  async #ready(server: ServerAddress, folder: string, address: string | undefined) {
    if (address !== undefined) return this.#deps.ssh?.(server, folder, address)
    if (server.kind !== 'https') return undefined
    const found = server.password ?? (await this.#deps.passwordFor(server))
    if (found === undefined || /[\r\n\0]/.test(found)) return undefined
    const credential: RemoteCredential = { user: server.user ?? ANY_USER, password: found }
    return credentialPipe(folder, server, credential)
  }
}

type FailedTransfer = TransferAnswer & { readonly failure: RemoteFailure }

const unreachable = (reason: string): FailedTransfer => ({
  text: '',
  stderr: '',
  failure: { code: 'unreachable', reason },
})

/** The settings and variables with which git reaches a server. */
interface WayToServer {
  readonly url: string
  readonly settings: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** The checked address for ssh, where `RemoteGitDeps.ssh` prepares it. */
  readonly address?: string
  /** The proxy that it goes through. */
  readonly proxy?: UpstreamProxy
}

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address)

/** Limits git to the checked addresses. */
const wayOf = (server: ServerAddress, addresses: readonly string[]): WayToServer => {
  const { kind, port, url } = server
  if (kind === 'ssh') return { url, settings: sshSettings(server, addresses[0]!), env: {} }
  const asked = new URL(url.replace(/^git:/i, 'http:'))
  const env = { GIT_OVERRIDE_VIRTUAL_HOST: asked.port === '' ? asked.hostname : asked.host }
  return { url: `git://${bracketed(addresses[0]!)}:${port}${asked.pathname}`, settings: [], env }
}

/** Limits git to the checked addresses, or to the proxy of the deployment, without redirects. */
const webWayOf = async (
  { kind, host, port, url }: ServerAddress,
  { addresses, proxy }: Way,
  folder: string,
): Promise<WayToServer> => {
  const settings = ['http.followRedirects=false']
  if (isIP(host) === 0 && !proxy)
    settings.push(`http.curloptResolve=${host}:${port}:${addresses.map(({ address }) => bracketed(address)).join(',')}`)
  const trusted =
    (kind === 'https' || proxy?.secure) && deploymentAuthorities() !== '' ? join(folder, 'authorities.pem') : undefined
  if (trusted !== undefined) await writeFile(trusted, systemAuthorities())
  return {
    url,
    settings: settings.flatMap(setting => ['-c', setting]),
    ...(proxy && { proxy }),
    env: {
      ...(trusted !== undefined && { GIT_SSL_CAINFO: trusted, GIT_PROXY_SSL_CAINFO: trusted }),
      // Its address may hold a password, which arguments would show.
      ...(proxy && { [`${kind}_proxy`]: proxy.address }),
      ...(proxy?.authorization !== undefined && { GIT_HTTP_PROXY_AUTHMETHOD: 'basic' }),
    },
  }
}

/** A name that means nothing to a shell: git runs the program for ssh by one. */
const PLAIN_HOST = /^[A-Za-z0-9._:-]+$/

/**
 * Ssh goes to the checked address and knows the server by its name. Keys and known servers are those that the
 * deployment shows behind the wall.
 */
const sshSettings = ({ host, port }: ServerAddress, address: string): string[] => {
  if (!PLAIN_HOST.test(host)) refuse('forbidden', 'the name of the server has unusual characters')
  const known = port === 22 ? host : `[${host}]:${port}`
  const options = ['BatchMode=yes', 'StrictHostKeyChecking=yes', 'ConnectTimeout=20', `HostName=${address}`]
  return ['-c', `core.sshCommand=ssh ${[...options, `'HostKeyAlias=${known}'`].map(each => `-o ${each}`).join(' ')}`]
}
