import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import { checkOutCommit } from '../../../sdk/node/transport/fetched-commit.js'
import { nameOfSource, powersIn } from '../listing/catalog.js'
import {
  assertRepositoryPath,
  folderOfCheckout,
  MOST_BYTES,
  MOST_FILES,
  placeCode,
  readCodeFolder,
  type CodeFolder,
} from '../../../sdk/node/transport/code-folder.js'
import { readExtension, type ParsedExtension } from '../manifest/parse.js'
import type { ExtensionPower } from '../powers/power.js'
import type { InstallSource } from './contract.js'

const KEPT_MS = 60 * 60_000
const LIMITS = { files: MOST_FILES, bytes: MOST_BYTES, purpose: 'installing an extension' }

/** A fetched commit with its manifest; nothing of it ran. */
export interface StagedCode extends ParsedExtension {
  /** The whole checkout, without git's own folder. */
  readonly root: string
  /** The extension's folder in it. */
  readonly dir: string
  readonly folder: CodeFolder
  readonly powers: readonly ExtensionPower[]
}

/** How a connection of kind `extension` fetches. */
export interface LinkedSource {
  /** The connection; its stored token is sent. */
  readonly link?: string
  /** The token itself, before it is stored. */
  readonly token?: string
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
  async fetch(source: Omit<InstallSource, 'registry'> & LinkedSource): Promise<StagedCode> {
    const { url, ref, path = '', secret, link, token } = source
    assertRepositoryPath(path, 'path')
    await mkdir(this.#root, { recursive: true, mode: 0o700 })
    const root = await mkdtemp(join(this.#root, 'code-'))
    try {
      await checkOutCommit(this.#host, root, { url, ref, secret, token: token ?? (await this.#tokenOf(link)) }, LIMITS)
      const dir = await folderOfCheckout(root, path)
      const folder = await readCodeFolder(dir, { hashed: false })
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

  async #tokenOf(link: string | undefined): Promise<string | undefined> {
    if (link === undefined || !(await this.#host.serves('secrets.get'))) return undefined
    return (await this.#host.call('secrets.get', { name: `${link}/token` })).value
  }

  /** Removes an unneeded fetched commit. */
  drop(root: string): Promise<void> {
    return rm(root, { recursive: true, force: true })
  }

  /**
   * Moves a fetched commit to its final path.
   *
   * @param kept A record names what is there: it is whole and stays. Otherwise that is left of an interrupted removal.
   */
  async place({ root }: Pick<StagedCode, 'root'>, to: string, kept: boolean): Promise<void> {
    if (kept) return this.drop(root)
    await placeCode(root, to)
    failpoint('extensions.code.placed')
  }

  /** Removes leftovers of interrupted fetches, and commits older than an hour. */
  async sweep(all = false): Promise<void> {
    for (const name of await readdir(this.#root).catch(() => [] as string[])) {
      const found = await stat(join(this.#root, name)).catch(() => undefined)
      if (all || (found && Date.now() - found.mtimeMs > KEPT_MS)) await this.drop(join(this.#root, name))
    }
  }
}
