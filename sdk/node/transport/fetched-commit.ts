import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../host.js'
import { refuse } from '../../refusal.js'
import { isLoopbackHostname } from '../models/outgoing.js'
import { git, GitFailure, type GitOptions } from '../programs/git.js'
import { remoteAddress, type RemoteAddress } from './remote-address.js'
import { RemoteGit, type TransferTimes } from './remote-git.js'
import type { RemoteFailure } from './remote-words.js'
import { storedToken } from './stored-token.js'

const CHECKOUT_MS = 180_000
/** The most bytes of objects that are fetched: a server may send without an end. */
const MOST_FETCHED = 1024 ** 3
/** The same for one file, which is read in the presence of a person, and how long that may take. */
const MOST_FOR_FILE = 256 * 1024 ** 2
const FILE_TIMES: TransferTimes = { stallMs: 20_000, limitMs: 60_000 }
const LOOK_MS = 250
const CHECKED = ['-c', 'fetch.fsckObjects=true', '-c', 'transfer.fsckObjects=true']
const FETCH = [...CHECKED, 'fetch', '--progress', '--no-tags', '--no-recurse-submodules']
/** What a fetch by name needs that a server refused by its id. */
const EVERYTHING = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*']

/** A repository elsewhere. */
interface RepositorySource {
  /** https, ssh, http on this machine, or the path of a repository in the workspace. */
  readonly url: string
  /** The name of a stored secret that is sent as access token. */
  readonly secret?: string | undefined
}

/** A commit of a repository elsewhere. */
export interface CommitSource extends RepositorySource {
  /** The full id of the commit. */
  readonly ref: string
  /** Sent as access token in place of a stored secret, over TLS alone; not stored. */
  readonly token?: string | undefined
}

/** What a name stands for in a repository elsewhere. */
export interface NamedSource extends RepositorySource {
  /** A branch, a tag or a commit; HEAD where it is missing. */
  readonly ref?: string | undefined
}

/** How much a commit may hold, and what it is fetched for, as the log of uses of secrets says it. */
export interface CommitLimits {
  readonly files: number
  readonly bytes: number
  readonly purpose: string
}

type FetchingHost = Pick<Host, 'call' | 'serves' | 'place' | 'signal'>

/**
 * Fills an empty folder with the files of a commit, without git's own folder; nothing of them is run. Refuses what is
 * not that commit, and what is too large before it is written.
 *
 * Git's own folder is beside it while this runs, under the folder's name with `.git`.
 */
export const checkOutCommit = async (
  host: FetchingHost,
  folder: string,
  { url, ref, secret, token }: CommitSource,
  limits: CommitLimits,
): Promise<void> => {
  const address = sourceAddress(host.place.workspace, url)
  assertSecure(address, token)
  const password = token ?? (await storedToken(host, address, secret, limits.purpose))
  const fetched = new FetchedRepository(host, `${folder}.git`, password)
  try {
    await fetched.fetch(address, url, ref)
    await fetched.assertCommit(url, ref)
    await fetched.assertSize(ref, limits)
    await fetched.checkOut(ref, folder)
  } finally {
    await rm(`${folder}.git`, { recursive: true, force: true })
  }
}

/**
 * Fills an empty folder with the files of a branch, tag or commit as it is now, of HEAD where none is named; as
 * `checkOutCommit`.
 */
export const checkOutNamed = async (
  host: FetchingHost,
  folder: string,
  { url, ref = 'HEAD', secret }: NamedSource,
  limits: CommitLimits,
): Promise<void> => {
  if (!/^\w[\w./-]*$/.test(ref)) refuse('invalid', 'ref: expected the name of a branch or tag, or a commit')
  const address = sourceAddress(host.place.workspace, url)
  const fetched = new FetchedRepository(host, `${folder}.git`, await storedToken(host, address, secret, limits.purpose))
  try {
    await fetched.fetchNamed(address, url, ref)
    await fetched.assertSize('FETCH_HEAD', limits)
    await fetched.checkOut('FETCH_HEAD', folder)
  } finally {
    await rm(`${folder}.git`, { recursive: true, force: true })
  }
}

/** A wanted file of a repository elsewhere. */
export interface WantedFile {
  readonly url: string
  /** The first of these paths that the repository has. */
  readonly paths: readonly string[]
  readonly maxBytes: number
  /** Sent as access token, over TLS alone; not stored. */
  readonly token?: string | undefined
}

/** A file of a repository elsewhere, and the commit that has it. */
export interface RepositoryFile {
  readonly path: string
  readonly bytes: Buffer
  readonly commit: string
}

/** A file of HEAD as it is now; undefined: the repository has none of them. 413: it is larger. */
export const fileOfRepository = async (
  host: FetchingHost,
  scratch: string,
  { url, paths, maxBytes, token }: WantedFile,
): Promise<RepositoryFile | undefined> => {
  const address = sourceAddress(host.place.workspace, url)
  assertSecure(address, token)
  const fetched = new FetchedRepository(host, scratch, token, { most: MOST_FOR_FILE, times: FILE_TIMES })
  try {
    await fetched.fetchNamed(address, url, 'HEAD')
    for (const path of paths) {
      const bytes = await fetched.file('FETCH_HEAD', path, maxBytes)
      if (bytes) return { path, bytes, commit: await fetched.commit() }
    }
    return undefined
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

const assertSecure = ({ kind }: RemoteAddress, token: string | undefined): void => {
  if (token !== undefined && kind !== 'https')
    refuse('invalid', `token: expected only with an https address, found ${kind}`)
}

/** A git dir of the daemon's own, filled from a remote; every git of it runs behind the wall. */
class FetchedRepository {
  readonly #host: FetchingHost
  readonly #dir: string
  readonly #remote: RemoteGit
  readonly #most: number

  constructor(
    host: FetchingHost,
    dir: string,
    token: string | undefined,
    { most = MOST_FETCHED, times }: { readonly most?: number; readonly times?: TransferTimes } = {},
  ) {
    const { workspace, data, hidden, grants } = host.place
    this.#host = host
    this.#dir = dir
    this.#most = most
    this.#remote = new RemoteGit({
      host,
      wall: { workspace, data, hide: hidden, grants },
      passwordFor: async () => token,
      ...(times && { times }),
    })
  }

  /** Fetches one commit, or all branches from a server that gives no commit by its id alone. */
  async fetch(address: RemoteAddress, url: string, ref: string): Promise<void> {
    await this.#begin()
    const failure = await this.#fetched(address, ['--depth=1'], [ref])
    if (failure === undefined) return
    const again = failure.code === 'other' ? await this.#fetched(address, [], EVERYTHING) : failure
    if (again) refuse('dependency', `${url} refused: ${again.reason.slice(0, 300)}`)
  }

  /** Fetches the commit that a name stands for now. */
  async fetchNamed(address: RemoteAddress, url: string, name: string): Promise<void> {
    await this.#begin()
    const failure = await this.#fetched(address, ['--depth=1'], [name])
    if (failure) refuse('dependency', `${url} refused: ${failure.reason.slice(0, 300)}`)
  }

  async assertCommit(url: string, ref: string): Promise<void> {
    const { text, code } = await this.#git(['rev-parse', '-q', '--verify', `${ref}^{commit}`], { ok: [0, 1, 128] })
    if (code !== 0 || text.trim() !== ref) refuse('dependency', `${url} has no commit ${ref}`)
  }

  /** The size is known before anything is written. */
  async assertSize(ref: string, most: CommitLimits): Promise<void> {
    let [files, bytes, rest] = [0, 0, '']
    await this.#git(['ls-tree', '-r', '-l', '-z', ref], {
      to: piece => {
        const rows = (rest + piece.toString('latin1')).split('\0')
        rest = rows.pop()!
        for (const row of rows) {
          files++
          bytes += Number(/^\S+ \S+ \S+\s+(\d+)/.exec(row)?.[1] ?? 0)
        }
      },
    })
    if (files > most.files || bytes > most.bytes)
      refuse('too-large', `it has ${files} files with ${bytes} bytes: expected at most ${most.files} and ${most.bytes}`)
  }

  async checkOut(ref: string, folder: string): Promise<void> {
    const how = { env: { GIT_WORK_TREE: folder }, exposed: [folder], timeoutMs: CHECKOUT_MS }
    try {
      await this.#git(['checkout', '-q', '--force', '--detach', ref], how)
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error
      refuse('dependency', `the commit cannot be checked out: ${error.stderr.trim().slice(0, 300)}`, { cause: error })
    }
  }

  async file(ref: string, path: string, maxBytes: number): Promise<Buffer | undefined> {
    const { text, code } = await this.#git(['cat-file', '-s', `${ref}:${path}`], { ok: [0, 128] })
    if (code !== 0) return undefined
    if (Number(text) > maxBytes) refuse('too-large', `${path} has more than ${maxBytes} bytes`)
    return (await this.#git(['cat-file', 'blob', `${ref}:${path}`], { maxBytes: maxBytes + 1 })).stdout
  }

  /** The commit that was fetched by name. */
  async commit(): Promise<string> {
    return (await this.#git(['rev-parse', 'FETCH_HEAD'])).text.trim()
  }

  async #begin(): Promise<void> {
    await mkdir(this.#dir, { mode: 0o700 })
    await this.#git(['init', '-q', '--bare', '--template=', this.#dir])
  }

  async #fetched(
    address: RemoteAddress,
    how: readonly string[],
    wanted: readonly string[],
  ): Promise<RemoteFailure | undefined> {
    const full = new AbortController()
    const look = setInterval(() => {
      void this.#packed().then(bytes => bytes > this.#most && full.abort())
    }, LOOK_MS)
    try {
      const { failure } = await this.#remote.run({
        address,
        args: asked => [...FETCH, ...how, '--end-of-options', asked, ...wanted],
        folder: this.#dir,
        env: { GIT_DIR: this.#dir },
        signal: full.signal,
      })
      if (full.signal.aborted) refuse('too-large', `it has more than ${this.#most} bytes`)
      return failure
    } finally {
      clearInterval(look)
    }
  }

  /** The bytes of the packs that were fetched so far. */
  async #packed(): Promise<number> {
    const folder = join(this.#dir, 'objects/pack')
    const names = await readdir(folder).catch(() => [] as string[])
    const sizes = names.map(name =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    )
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }

  /** Without a network. */
  #git(
    args: readonly string[],
    { exposed = [], ...options }: GitOptions & { readonly exposed?: readonly string[] } = {},
  ) {
    const { workspace, data, hidden, grants } = this.#host.place
    return git(this.#dir, args, {
      signal: this.#host.signal,
      ...options,
      env: { GIT_DIR: this.#dir, ...options.env },
      wall: { workspace, data, hide: hidden, grants, exposed: [this.#dir, ...exposed], sealed: true, offline: true },
    })
  }
}

/** Whether code can be fetched from an address. */
export const isSource = (workspace: string, url: string): boolean => {
  try {
    sourceAddress(workspace, url)
    return true
  } catch {
    return false
  }
}

/** Where code is fetched from: https, ssh, http on this machine, or a repository of the workspace. */
const sourceAddress = (workspace: string, url: string): RemoteAddress => {
  const wrong = (found: string): never =>
    refuse('invalid', `url: expected https, ssh or a repository of the workspace, found ${found}`, {
      errors: [{ path: 'url', expected: 'an https or ssh address, or a path in the workspace' }],
    })
  if (/\s/.test(url)) return wrong('blanks')
  if (url.startsWith('/')) return wrong('an absolute path')
  if (/^file:/i.test(url)) return wrong('a file address')
  // To git each is a host and a path, as in `host:path`; a page that shows the address may see more in it.
  if (/^(?:about|blob|data|javascript|vbscript):/i.test(url)) return wrong('an address that only a browser understands')
  const address = remoteAddress(url, { workspace, from: workspace, field: 'url' })
  if (address.kind === 'local') return address
  if (address.password !== undefined) return wrong('an address with a password')
  if (address.kind === 'git') return wrong('a git address, which nobody vouches for')
  if (address.kind === 'http' && !isLoopbackHostname(address.host)) return wrong('http to another machine')
  if (address.kind !== 'ssh' && address.user !== undefined) return wrong('an address with a user name')
  return address
}
