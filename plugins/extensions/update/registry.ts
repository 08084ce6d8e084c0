import { realpath } from 'node:fs/promises'
import { refuse, Refusal, type Host } from '../../../sdk/index.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { parseObject } from '../../../sdk/node/files/json.js'
import { plainBytes } from '../../../sdk/node/files/real-folders.js'
import { bytesOf, outgoing, Unanswered } from '../../../sdk/node/models/outgoing.js'
import { fileOfRepository } from '../../../sdk/node/transport/fetched-commit.js'
import { isInRange } from '../manifest/engines.js'
import type { InstalledCode } from '../records/kept-extension.js'
import { checkRegistry } from './contract.js'
import {
  INDEX_WITHIN_MS,
  indexScratch,
  isIndexAddress,
  isRepository,
  MOST_INDEX_BYTES,
  REGISTRY_FILE,
} from './index-source.js'
import type { ExtensionRegistry, RegistryEntry } from './registry-file.js'

const MOST_CACHED = 4

interface CachedRegistry {
  readonly etag: string
  readonly registry: ExtensionRegistry
}

/**
 * Reads the indexes that list extensions: files of the workspace, addresses, of which a few are cached, and the file
 * `registry.json` in the root of a repository.
 */
export class Registries {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>
  readonly #cached = new Map<string, CachedRegistry>()

  constructor(host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>) {
    this.#host = host
  }

  /** The index at an address. 424: it cannot be read. */
  async read(address: string): Promise<ExtensionRegistry> {
    try {
      if (await isRepository(this.#host, address)) return await this.#repository(address)
      return await (/^[a-z][a-z0-9+.-]*:/i.test(address) ? this.#fetch(address) : this.#file(address))
    } catch (error) {
      if (error instanceof Unanswered) refuse('dependency', error.message, { cause: error })
      if (error instanceof Refusal && error.reason === 'too-large')
        refuse('dependency', `the registry ${address} cannot be used: ${error.message}`, { cause: error })
      if (error instanceof Refusal && error.reason === 'not-found')
        refuse('dependency', `the registry ${address} is not there`, { cause: error })
      throw error
    }
  }

  /** The index as the branch has it that the repository shows first. */
  async #repository(url: string): Promise<ExtensionRegistry> {
    const wanted = { url, paths: [REGISTRY_FILE], maxBytes: MOST_INDEX_BYTES }
    const found = await fileOfRepository(this.#host, await indexScratch(this.#host), wanted)
    return parsed(found?.bytes ?? refuse('dependency', `the repository ${url} has no ${REGISTRY_FILE}`), url)
  }

  async #file(path: string): Promise<ExtensionRegistry> {
    const root = await realpath(this.#host.place.workspace)
    const bytes = await plainBytes(await inside(root, path), MOST_INDEX_BYTES)
    return parsed(
      bytes ?? refuse('dependency', `the registry ${path} is no file of at most ${MOST_INDEX_BYTES} bytes`),
      path,
    )
  }

  async #fetch(address: string): Promise<ExtensionRegistry> {
    if (!isIndexAddress(address))
      refuse('invalid', `registry: expected https or a path in the workspace, found ${address.slice(0, 100)}`)
    const known = this.#cached.get(address)
    const answer = await outgoing({
      url: address,
      signal: this.#host.signal,
      within: INDEX_WITHIN_MS,
      headers: { accept: 'application/json', ...(known && { 'if-none-match': known.etag }) },
    })
    if (answer.status === 304 && known) {
      answer.body.resume()
      return known.registry
    }
    const { bytes, cut } = await bytesOf(answer, MOST_INDEX_BYTES, INDEX_WITHIN_MS)
    if (answer.status !== 200) refuse('dependency', `the registry ${address} answered with ${answer.status}`)
    if (cut) refuse('dependency', `the registry ${address} has more than ${MOST_INDEX_BYTES} bytes`)
    const registry = parsed(bytes, address)
    const { etag } = answer.headers
    this.#cached.delete(address)
    if (typeof etag === 'string') this.#cached.set(address, { etag, registry })
    if (this.#cached.size > MOST_CACHED) this.#cached.delete(this.#cached.keys().next().value!)
    return registry
  }
}

const parsed = (bytes: Buffer, address: string): ExtensionRegistry => {
  try {
    const checked = checkRegistry(parseObject(bytes))
    if (checked.success) return checked.data
    const [first] = checked.errors
    return refuse('dependency', `the registry ${address} cannot be used: ${first?.path}: expected ${first?.expected}`)
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'dependency') throw error
    return refuse('dependency', `the registry ${address} cannot be used: ${(error as Error).message}`, { cause: error })
  }
}

/** The entry of an extension in an index. */
export const listingIn = ({ extensions }: ExtensionRegistry, id: string): RegistryEntry | undefined =>
  extensions.find(each => each.id === id)

/** The warning of an index about the installed version. */
export const advisoryIn = (
  { advisories = [], extensions }: ExtensionRegistry,
  id: string,
  { current: { ref, version } }: Pick<InstalledCode, 'current'>,
): { reason: string; at: string } | undefined => {
  const named = advisories.find(
    each =>
      each.id === id
      && (each.refs === 'all' || each.refs.includes(ref))
      && (each.versions === undefined || (version !== undefined && isInRange(version, each.versions))),
  )
  if (named) return named
  const blocked = extensions.find(each => each.id === id && each.trust === 'blocked')
  return blocked && { reason: blocked.trustReason ?? 'its registry blocks it', at: blocked.publishedAt ?? '' }
}
