import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal, type Host } from '../../../sdk/index.js'
import { addressesOf, SENTENCES } from '../../../sdk/node/network/outbound.js'
import { git } from '../../../sdk/node/programs/git.js'
import { anyExit } from '../branches/git-words.js'
import type { RepoGit, WallBase } from '../repositories/repo-git.js'
import { credentialPipe, type RemoteCredential } from './credential-pipe.js'
import { KnownHosts } from './known-hosts.js'
import type { RemoteAddress, ServerAddress } from './remote-address.js'
import { remoteFailure, type RemoteFailure } from './remote-words.js'
import { ScratchTransfer } from './scratch-repo.js'
import { sshWay } from './ssh-way.js'

/** One git that talks to a remote. */
export interface TransferOrder {
  readonly address: RemoteAddress
  /** Its arguments, with the address to ask among them. */
  readonly args: (url: string) => readonly string[]
  /** A folder of its own that it may write, shown to it alone. */
  readonly folder: string
  /** Where git works; left out: that folder. */
  readonly dir?: string
  readonly env?: { readonly [name: string]: string }
  /** What else it sees of the daemon's folders. */
  readonly exposed?: readonly string[]
  /** What it may write below the workspace's `.sandbox/`. */
  readonly writable?: readonly string[]
  readonly progress?: (piece: Buffer) => void
  readonly signal?: AbortSignal
}

/** What came of it; no failure: it was done. */
export interface TransferAnswer {
  readonly text: string
  readonly stderr: string
  readonly failure?: RemoteFailure
}

/** How long a remote is waited for. */
export interface TransferTimes {
  /** Without a word of progress. */
  readonly stallMs: number
  /** In all. */
  readonly limitMs: number
}

const TIMES: TransferTimes = { stallMs: 120_000, limitMs: 600_000 }
const LOOKUP_MS = 30_000
const MOST_KEY = 16_384

/** Who has no user name in the address: tokens of forges go with any. */
const ANY_USER = 'x-access-token'

/** Runs git against remotes: behind the wall, from a git dir of the daemon's own, with a deadline and a credential. */
export class Transfers {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>
  readonly #wall: WallBase
  readonly #times: TransferTimes
  readonly #known: KnownHosts

  constructor(host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>, wall: WallBase, times?: TransferTimes) {
    this.#host = host
    this.#wall = wall
    this.#times = times
    this.#known = new KnownHosts(host.place.folder)
  }

  /** The folder for files of running transfers. */
  get folder(): string {
    return join(this.#host.place.folder, 'transfers')
  }

  /** Removes the files that a killed daemon left. */
  async sweep(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
  }

  /** Runs `work` with a temporary git dir over the objects of a repository. */
  async with<T>(repository: RepoGit, work: (scratch: ScratchTransfer) => Promise<T>): Promise<T> {
    await using scratch = await ScratchTransfer.open(this.folder, repository)
    return await work(scratch)
  }

  /** Runs git between a repository and a remote, from its temporary git dir. */
  inScratch(
    repository: RepoGit,
    scratch: ScratchTransfer,
    address: RemoteAddress,
    args: (url: string) => readonly string[],
    signal?: AbortSignal,
  ): Promise<TransferAnswer> {
    const { common, dir } = repository.place
    const exposed = [common].filter(path => path.startsWith(`${this.#wall.data}/`))
    return this.run({ address, args, folder: scratch.dir, dir, env: scratch.env, exposed, ...(signal && { signal }) })
  }

  /** Runs git against a remote. */
  async run(order: TransferOrder): Promise<TransferAnswer> {
    const { address, args, folder, dir, env = {}, exposed = [], writable = [], progress, signal } = order
    const server = address.kind === 'local' ? undefined : address
    const stall = new AbortController()
    const limit = AbortSignal.timeout(this.#times.limitMs)
    const over = AbortSignal.any([this.#host.signal, stall.signal, limit, ...(signal ? [signal] : [])])
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
        wall: { ...this.#wall, exposed: [folder, ...exposed], writable },
        ...anyExit,
      })
      await credential?.pin?.()
      const { text, stderr } = answer
      if (answer.code === 0) return { text, stderr }
      return { text, stderr, failure: remoteFailure(stderr, server?.host ?? 'it') }
    } catch (error) {
      if (stall.signal.aborted)
        return unreachable(`${server?.host ?? 'it'} did not answer for ${this.#times.stallMs / 1000} s`)
      if (signal?.aborted && !this.#host.signal.aborted) return unreachable('it took longer than there was time')
      if (limit.aborted) return unreachable(`it did not end within ${this.#times.limitMs / 1000} s`)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** The settings that hold git to addresses of the host that were checked. */
  async #wayTo(server: ServerAddress, folder: string, signal: AbortSignal): Promise<WayToServer | FailedTransfer> {
    const { host, port, kind } = server
    const name = host.includes(':') ? `[${host}]` : host
    const { listeners } = await this.#host.call('kernel.listeners')
    try {
      const soon = AbortSignal.any([signal, AbortSignal.timeout(LOOKUP_MS)])
      const found = await addressesOf(new URL(`http://${name}:${port}`), { near: true, listeners }, soon)
      const addresses = found.map(({ address }) => address)
      return await wayOf(server, addresses, folder)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof Refusal) return unreachable(error.message)
      const { code = '', message } = error as NodeJS.ErrnoException
      return unreachable(`${name} could not be asked for ${kind}: ${SENTENCES[code] ?? message}`)
    }
  }

  /** What the server may be told: the password of the address, or the stored value or key that is bound to its host. */
  async #ready(server: ServerAddress, folder: string, address: string | undefined) {
    const { kind, host } = server
    if (kind === 'ssh') {
      const key = await this.#stored(host, 'key')
      const fits = key !== undefined && key.length <= MOST_KEY
      return sshWay(folder, server, address!, fits ? key : undefined, this.#known)
    }
    if (kind !== 'https') return undefined
    const found = server.password ?? (await this.#stored(host, 'password'))
    if (found === undefined || /[\r\n\0]/.test(found)) return undefined
    const credential: RemoteCredential = { user: server.user ?? ANY_USER, password: found }
    return credentialPipe(folder, server, credential)
  }

  async #stored(host: string, form: 'password' | 'key'): Promise<string | undefined> {
    if (!(await this.#host.serves('secrets.forHost'))) return undefined
    return (await this.#host.call('secrets.forHost', { host, form, lane: 'git', detail: `git ${host}` })).value
  }
}

type FailedTransfer = TransferAnswer & { readonly failure: RemoteFailure }

const unreachable = (reason: string): FailedTransfer => ({
  text: '',
  stderr: '',
  failure: { code: 'unreachable', reason },
})

/** How git reaches a server. */
interface WayToServer {
  readonly url: string
  readonly settings: readonly string[]
  readonly env: { readonly [name: string]: string }
  /** The checked address that ssh is held to. */
  readonly address?: string
}

/** Holds git to the addresses that were checked, without a redirect. */
const wayOf = async (server: ServerAddress, addresses: readonly string[], folder: string): Promise<WayToServer> => {
  const { kind, host, port, url } = server
  const bracketed = addresses.map(address => (address.includes(':') ? `[${address}]` : address))
  if (kind === 'git') {
    const asked = new URL(url.replace(/^git:/i, 'http:'))
    const env = { GIT_OVERRIDE_VIRTUAL_HOST: asked.port === '' ? asked.hostname : asked.host }
    return { url: `git://${bracketed[0]}:${port}${asked.pathname}`, settings: [], env }
  }
  if (kind === 'ssh') {
    const address = addresses.find(each => isIP(each) === 4) ?? addresses[0]!
    return { url, settings: [], env: {}, address }
  }
  const settings = ['http.followRedirects=false']
  if (isIP(host) === 0) settings.push(`http.curloptResolve=${host}:${port}:${bracketed.join(',')}`)
  const { SSL_CERT_FILE } = process.env
  const trusted = kind === 'https' && SSL_CERT_FILE ? join(folder, 'authorities.pem') : undefined
  if (trusted !== undefined) await copyFile(SSL_CERT_FILE!, trusted)
  return {
    url,
    settings: settings.flatMap(setting => ['-c', setting]),
    env: trusted === undefined ? {} : { GIT_SSL_CAINFO: trusted },
  }
}
