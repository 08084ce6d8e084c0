import { hash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import {
  folderOfCheckout,
  MOST_BYTES,
  MOST_FILES,
  placeCode,
  readCodeFolder,
} from '../../../sdk/node/transport/code-folder.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import { readJson, writeAtomic } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { checkOutCommit } from '../../../sdk/node/transport/fetched-commit.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import type { ShownConfig } from '../records/contract.js'
import type { OpenEntry } from '../records/kinds.js'
import { broughtSentences, takeContents, type PluginContents } from './contents.js'

const LIMITS = { files: MOST_FILES, bytes: MOST_BYTES, purpose: 'connecting a plugin' }
const STAGING = '.staging'
/** Where programs of turns see plugins, each in a folder named by its connection. */
const FOLDER = '/run/sandbox-plugins'

const text = (config: ShownConfig, field: string): string => String(config[field] ?? '')

/** Changes with everything that decides what is fetched. */
const keyOf = (config: ShownConfig): string => {
  const source = hash('sha256', JSON.stringify([text(config, 'url'), text(config, 'path')]), 'hex').slice(0, 12)
  return `${text(config, 'ref')}-${source}`
}

/** A checked out plugin, and where programs of turns see it. */
export interface PluginFolder {
  readonly dir: string
  readonly seen: string
}

/** The files of plugins, each commit in a folder of the daemon's own; nothing of them runs here. */
export class PluginCheckouts {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>
  readonly #root: string

  constructor(host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>) {
    this.#host = host
    this.#root = join(host.place.folder, 'plugins')
  }

  /** Fetches the commit of a connection and puts it beside the one in force, which stays, as does what is whole. */
  async fetch({ id, config, secrets }: OpenEntry, signal: AbortSignal): Promise<PluginContents> {
    const staging = join(this.#root, STAGING)
    await mkdir(staging, { recursive: true, mode: 0o700 })
    const root = await mkdtemp(join(staging, 'code-'))
    const { call, serves, place } = this.#host
    try {
      const source = { url: text(config, 'url'), ref: text(config, 'ref'), token: secrets.token }
      await checkOutCommit({ call, serves, place, signal }, root, source, LIMITS)
      const dir = await folderOfCheckout(root, text(config, 'path'))
      const folder = await readCodeFolder(dir, { hashed: false })
      if (folder.wrong !== undefined) refuse('unprocessable', folder.wrong)
      const contents = await takeContents(dir)
      if (broughtSentences(contents).length === 0)
        refuse(
          'unprocessable',
          `there is no plugin in ${text(config, 'path') || 'this commit'}: expected skills/, agents/, commands/, `
            + `hooks/ or .mcp.json${contents.problems.length > 0 ? `; ${contents.problems[0]}` : ''}`,
        )
      if (await this.isWhole(id, config)) return contents
      await mkdir(join(this.#root, id), { recursive: true, mode: 0o700 })
      await writeAtomic(this.#about(id, config), JSON.stringify(contents))
      await placeCode(dir, this.#dir(id, config))
      failpoint('capabilities.plugin.placed')
      return contents
    } catch (error) {
      if (isFull(error)) refuse('too-large', 'the disk is full: free some space and try again', { cause: error })
      throw error
    } finally {
      await rm(root, { recursive: true, force: true })
    }
  }

  /** What a plugin brings; undefined: its checkout is not there. */
  async contents(id: string, config: ShownConfig): Promise<PluginContents | undefined> {
    const there = await stat(this.#dir(id, config)).catch(() => undefined)
    return there && readJson<PluginContents>(this.#about(id, config))
  }

  /** The tool servers of every commit that is kept of a plugin. */
  async servers(id: string): Promise<string[]> {
    const about = (await this.#names(id)).filter(name => name.endsWith('.json'))
    const read = about.map(name => readJson<PluginContents>(join(this.#root, id, name)))
    return (await Promise.all(read)).flatMap(contents => contents?.servers.map(({ name }) => name) ?? [])
  }

  /** Whether every file is there as it was fetched. */
  async isWhole(id: string, config: ShownConfig): Promise<boolean> {
    const contents = await this.contents(id, config)
    if (!contents) return false
    const folder = await readCodeFolder(this.#dir(id, config), { hashed: false })
    return folder.wrong === undefined && folder.files.size === contents.files && folder.bytes === contents.bytes
  }

  async folder(id: string, config: ShownConfig): Promise<PluginFolder> {
    const dir = this.#dir(id, config)
    return { dir, seen: (await wallKind()) === 'none' ? dir : posix.join(FOLDER, id) }
  }

  /** Removes the commits that are not in force, but `spared`: turns that run may still see it. */
  async keepOnly(id: string, config: ShownConfig, spared?: ShownConfig): Promise<void> {
    const kept = [config, ...(spared ? [spared] : [])].map(keyOf)
    for (const name of await this.#names(id))
      if (!kept.some(key => name === key || name === `${key}.json`))
        await rm(join(this.#root, id, name), { recursive: true, force: true })
  }

  async drop(id: string): Promise<void> {
    await rm(join(this.#root, id), { recursive: true, force: true })
  }

  async rename(id: string, to: string): Promise<void> {
    await rename(join(this.#root, id), join(this.#root, to)).catch(error => {
      if (codeOf(error) !== 'ENOENT') throw error
    })
  }

  /** Removes what interrupted changes left: everything but the commits in force. */
  async sweep(inForce: ReadonlyMap<string, ShownConfig>): Promise<void> {
    for (const id of await readdir(this.#root).catch(() => [] as string[])) {
      const config = inForce.get(id)
      if (config) await this.keepOnly(id, config)
      else await this.drop(id)
    }
  }

  #names(id: string): Promise<string[]> {
    return readdir(join(this.#root, id)).catch(() => [])
  }

  #dir(id: string, config: ShownConfig): string {
    return join(this.#root, id, keyOf(config))
  }

  #about(id: string, config: ShownConfig): string {
    return `${this.#dir(id, config)}.json`
  }
}
