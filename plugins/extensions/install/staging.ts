import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import { flushFolders, flushTree } from '../../../sdk/node/files/files.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { git, GitFailure, type GitOptions } from '../../../sdk/node/programs/git.js'
import { nameOfSource, powersIn } from '../listing/catalog.js'
import { MOST_BYTES, MOST_FILES, readExtensionFolder, type ExtensionFolder } from '../manifest/extension-folder.js'
import { readExtension, type ParsedExtension } from '../manifest/parse.js'
import type { ExtensionPower } from '../powers/powers.js'
import type { InstallSource } from './contract.js'
import { gitAddress, type GitAddress } from './source.js'

const FETCH_MS = 180_000
const KEPT_MS = 60 * 60_000
/** No redirect: the access token is for the host that was named. */
const FETCH = ['-c', 'http.followRedirects=false', '-c', 'fetch.fsckObjects=true', '-c', 'transfer.fsckObjects=true']

/** A commit that was fetched and looked at; nothing of it ran. */
export interface StagedCode extends ParsedExtension {
  /** The whole checkout, without git's own folder. */
  readonly root: string
  /** The extension's folder in it. */
  readonly dir: string
  readonly folder: ExtensionFolder
  readonly powers: readonly ExtensionPower[]
}

/** Fetches commits into a folder of the daemon's own. */
export class CodeStaging {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>

  constructor(host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>) {
    this.#host = host
  }

  get #root(): string {
    return join(this.#host.place.folder, 'staging')
  }

  /** Fetches a commit and reads its manifest; the caller moves it away or drops it. */
  async fetch({ url, ref, path = '', secret }: Omit<InstallSource, 'registry'>): Promise<StagedCode> {
    assertInnerPath(path)
    const from = await gitAddress(this.#host.place.workspace, url)
    await mkdir(this.#root, { recursive: true, mode: 0o700 })
    const root = await mkdtemp(join(this.#root, 'code-'))
    try {
      await this.#checkOut(root, from, ref, secret)
      const dir = join(root, path)
      const folder = await readExtensionFolder(dir, { hashed: false })
      if (folder.wrong !== undefined) refuse('unprocessable', folder.wrong)
      const parsed = await readExtension(dir, nameOfSource(url, path))
      if ('error' in parsed) return refuse('unprocessable', parsed.error)
      return { ...parsed, root, dir, folder, powers: powersIn(parsed, folder) }
    } catch (error) {
      await this.drop(root)
      if (isFull(error)) refuse('too-large', 'the disk is full: free some space and try again', { cause: error })
      throw error
    }
  }

  /** Removes a fetched commit that nobody needs. */
  drop(root: string): Promise<void> {
    return rm(root, { recursive: true, force: true })
  }

  /** Moves a fetched commit to where it stays; one that is there already is left alone. */
  async place({ root }: Pick<StagedCode, 'root'>, to: string): Promise<void> {
    await mkdir(join(to, '..'), { recursive: true, mode: 0o700 })
    await rm(to, { recursive: true, force: true })
    await flushTree(root)
    await rename(root, to)
    await flushFolders(to)
    failpoint('extensions.code.placed')
  }

  /** Removes what interrupted fetches left, and what is older than an hour. */
  async sweep(all = false): Promise<void> {
    for (const name of await readdir(this.#root).catch(() => [] as string[])) {
      const found = await stat(join(this.#root, name)).catch(() => undefined)
      if (all || (found && Date.now() - found.mtimeMs > KEPT_MS)) await this.drop(join(this.#root, name))
    }
  }

  async #checkOut(root: string, from: GitAddress, ref: string, secret: string | undefined): Promise<void> {
    const { address, protocol } = from
    const env = { GIT_ALLOW_PROTOCOL: protocol, ...SSH, ...(await this.#tokenEnv(protocol, secret)) }
    const options: GitOptions = { signal: this.#host.signal, timeoutMs: FETCH_MS, env }
    await git(root, ['init', '-q', '--template='], options)
    try {
      await git(root, [...FETCH, 'fetch', '-q', '--no-tags', '--depth=1', '--', address, ref], options)
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error
      // Some servers give no commit by its name alone: what their branches hold is fetched then.
      const all = ['fetch', '-q', '--no-tags', '--', address, '+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*']
      await git(root, [...FETCH, ...all], options).catch(failed => refuseSource(failed, address))
    }
    const { text, code } = await git(root, ['rev-parse', '-q', '--verify', `${ref}^{commit}`], { ok: [0, 1, 128] })
    if (code !== 0 || text.trim() !== ref) refuse('dependency', `${address} has no commit ${ref}`)
    await assertSize(root, ref)
    await git(root, ['checkout', '-q', '--detach', ref], { timeoutMs: FETCH_MS }).catch(failed =>
      refuseSource(failed, address),
    )
    await rm(join(root, '.git'), { recursive: true, force: true })
  }

  /** The access token goes to git in its environment: an argument is seen by others. */
  async #tokenEnv(protocol: string, secret: string | undefined): Promise<{ [name: string]: string }> {
    if (secret === undefined) return {}
    if (protocol !== 'https' && protocol !== 'http') refuse('invalid', 'secret: expected only with an https address')
    const missing = `there is no stored secret ${secret} that can be read: set it with POST /secrets`
    if (!(await this.#host.serves('secrets.resolve'))) return refuse('dependency', missing)
    const asked = { text: `{{secret:${secret}}}`, lane: 'shell' as const, detail: 'installing an extension' }
    const { text } = await this.#host.call('secrets.resolve', asked)
    if (text === undefined) return refuse('dependency', missing)
    const basic = Buffer.from(`x-access-token:${text}`).toString('base64')
    return {
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'http.extraHeader',
      GIT_CONFIG_VALUE_0: `Authorization: Basic ${basic}`,
    }
  }
}

const SSH = { GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=20' }

const assertInnerPath = (path: string): void => {
  if (path === '') return
  const bad = /[\\\0]/.test(path) || path.split('/').some(part => part === '' || part === '.' || part === '..')
  if (bad || !contains('/x', join('/x', path)) || path === '.git' || path.startsWith('.git/'))
    refuse('invalid', `path: expected a folder of the repository, found ${JSON.stringify(path.slice(0, 100))}`)
}

const refuseSource = (error: unknown, address: string): never => {
  if (error instanceof Refusal || !(error instanceof GitFailure)) throw error
  const words = error.stderr.split('\n').find(line => /fatal|error/.test(line)) ?? error.message
  return refuse('dependency', `${address} refused: ${words.replace(/^(?:fatal|error): /, '').slice(0, 300)}`, {
    cause: error,
  })
}

/** The size is known before anything is written. */
const assertSize = async (root: string, ref: string): Promise<void> => {
  let [files, bytes, rest] = [0, 0, '']
  await git(root, ['ls-tree', '-r', '-l', '-z', ref], {
    to: piece => {
      const rows = (rest + piece.toString('latin1')).split('\0')
      rest = rows.pop()!
      for (const row of rows) {
        files++
        bytes += Number(/^\S+ \S+ \S+\s+(\d+)/.exec(row)?.[1] ?? 0)
      }
    },
  })
  if (files > MOST_FILES || bytes > MOST_BYTES)
    refuse('too-large', `it has ${files} files with ${bytes} bytes: expected at most ${MOST_FILES} and ${MOST_BYTES}`)
}
