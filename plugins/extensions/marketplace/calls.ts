import { realpath } from 'node:fs/promises'
import { Refusal, refuse, type Handlers, type Host } from '../../../sdk/index.js'
import { parseObject } from '../../../sdk/node/files/json.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { plainBytes } from '../../../sdk/node/files/real-folders.js'
import { bytesOf, outgoing, Unanswered } from '../../../sdk/node/models/outgoing.js'
import { fileOfRepository, isSource } from '../../../sdk/node/transport/fetched-commit.js'
import { SELECTORS, unseenBut } from '../../../sdk/unseen.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { admitsHost } from '../manifest/engines.js'
import { checkRegistry } from '../update/contract.js'
import {
  hasScheme,
  INDEX_WITHIN_MS,
  indexScratch,
  isIndexAddress,
  isRepository,
  MOST_INDEX_BYTES,
  REGISTRY_FILE,
} from '../update/index-source.js'
import type { ExtensionRegistry } from '../update/registry-file.js'
import { checkPluginList, type MarketEntry, type Marketplace, type MarketplaceCalls } from './contract.js'
import { PLUGIN_LIST_FILE, pluginRows, type ListOrigin } from './plugin-rows.js'

type ReadingHost = Pick<Host, 'call' | 'serves' | 'place' | 'signal'>

interface MarketAsked {
  readonly url: string
  readonly token?: string
}
interface ReadIndex {
  readonly bytes: Buffer
  /** Where a list of plugins is in a repository. */
  readonly origin?: ListOrigin
}

const ADDRESSES = 'expected https, a git repository or a file of the workspace'
const RANK = { verified: 0, listed: 1, blocked: 2 } as const
const SHA = /^[0-9a-f]{40}$/
const UNSEEN = unseenBut(`\\t\\n${SELECTORS}`)

/** Serves the rows of an index. */
export const marketplaceCalls = (all: LoadedExtensions): Handlers<MarketplaceCalls> => ({
  'POST /capabilities/marketplace': async asked => {
    const { name, plugins } = rowsOf(await readIndex(all.host, asked), url => isSource(all.host.place.workspace, url))
    const marked = plugins.map(row => ({ ...row, ...installedOf(all, row) }))
    return {
      name,
      plugins: marked.sort((one, other) => RANK[one.trust] - RANK[other.trust] || (one.name < other.name ? -1 : 1)),
    }
  },
})

const installedOf = (all: LoadedExtensions, { name, kind }: MarketEntry): Pick<MarketEntry, 'installed'> => {
  const found = kind === 'extension' ? all.catalog.loaded.get(name) : undefined
  return found ? { installed: { id: found.id, ref: found.commit } } : {}
}

/** The bytes of an index; the token is in this one request alone. */
const readIndex = async (host: ReadingHost, asked: MarketAsked): Promise<ReadIndex> => {
  const { url } = asked
  try {
    if (await isRepository(host, url)) return await fromRepository(host, asked)
    return { bytes: await (hasScheme(url) ? fromServer(host, asked) : fromFile(host, asked)) }
  } catch (error) {
    if (error instanceof Unanswered) refuse('dependency', error.message, { cause: error })
    throw error
  }
}

const fromRepository = async (host: ReadingHost, { url, token }: MarketAsked): Promise<ReadIndex> => {
  const wanted = { url, token, paths: [REGISTRY_FILE, PLUGIN_LIST_FILE], maxBytes: MOST_INDEX_BYTES }
  const found =
    (await fileOfRepository(host, await indexScratch(host), wanted))
    ?? refuse('unprocessable', `the repository has neither ${REGISTRY_FILE} nor ${PLUGIN_LIST_FILE}`)
  return { bytes: found.bytes, origin: { url, commit: found.commit } }
}

const fromFile = async ({ place }: ReadingHost, { url, token }: MarketAsked): Promise<Buffer> => {
  if (token !== undefined)
    refuse('invalid', `token: expected none for a file of the workspace, found one of ${token.length} characters`)
  const path = await inside(await realpath(place.workspace), url).catch(error =>
    error instanceof Refusal && error.reason === 'not-found'
      ? refuse('unprocessable', `there is no ${url.slice(0, 200)} in the workspace`, { cause: error })
      : refuse('invalid', `url: ${ADDRESSES}, found ${url.slice(0, 100)}`, { cause: error }),
  )
  const bytes = await plainBytes(path, MOST_INDEX_BYTES + 1)
  if (!bytes) return refuse('unprocessable', `${url.slice(0, 200)} is no file of at most ${MOST_INDEX_BYTES} bytes`)
  return withinLimit(bytes, bytes.length > MOST_INDEX_BYTES)
}

const fromServer = async ({ signal }: ReadingHost, { url, token }: MarketAsked): Promise<Buffer> => {
  if (!isIndexAddress(url)) refuse('invalid', `url: ${ADDRESSES}, found ${url.slice(0, 100)}`)
  const answer = await outgoing({
    ...{ url, signal, within: INDEX_WITHIN_MS },
    headers: { accept: 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
  })
  const { bytes, cut } = await bytesOf(answer, MOST_INDEX_BYTES, INDEX_WITHIN_MS)
  if (answer.status !== 200) refuse('dependency', `${new URL(url).origin} answered with ${answer.status}`)
  return withinLimit(bytes, cut)
}

const withinLimit = (bytes: Buffer, cut: boolean): Buffer =>
  cut ? refuse('too-large', `the index has more than ${MOST_INDEX_BYTES} bytes`) : bytes

/** The rows of an index of either format. */
const rowsOf = ({ bytes, origin }: ReadIndex, isFetched: (url: string) => boolean): Marketplace => {
  const value = parsed(bytes)
  if ('plugins' in value) {
    const list = checked(checkPluginList(value))
    return { name: list.name, plugins: pluginRows(list, origin, isFetched) }
  }
  const registry = checked(checkRegistry(value))
  return { name: registry.name, plugins: registry.extensions.map(entry => registryRow(entry, isFetched)) }
}

const parsed = (bytes: Buffer): object => {
  try {
    return seen(parseObject(bytes))
  } catch (error) {
    const { message } = error as Error
    return refuse(
      'unprocessable',
      `there is no index at this address: ${message.replace('the body', 'it')}; that of a repository ends with .git`,
      { cause: error },
    )
  }
}

/** A value whose texts have no characters that a reader does not see: what is installed is what was shown. */
const seen = <T>(value: T): T => {
  if (typeof value === 'string') return value.replace(UNSEEN, '') as T
  if (typeof value !== 'object' || value === null) return value
  const parts = Object.entries(value).map(([key, part]) => [key, seen(part)] as const)
  return (Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts)) as T
}

const checked = <T>(
  result: { success: true; data: T } | { success: false; errors: { path: string; expected: string }[] },
): T => {
  if (result.success) return result.data
  const [first] = result.errors
  return refuse(
    'unprocessable',
    `the index cannot be used: ${first?.path.replace('$input.', '')}: expected ${first?.expected}`,
  )
}

const registryRow = (
  {
    id,
    kind = 'extension',
    source,
    trust = 'listed',
    engines,
    publishedAt: _at,
    ...shown
  }: ExtensionRegistry['extensions'][number],
  isFetched: (url: string) => boolean,
): MarketEntry => {
  const compatible = engines === undefined ? undefined : admitsHost(engines)
  const fetched = isFetched(source.url)
  return {
    ...{ name: id, kind, ...shown, trust },
    admitted: kind === 'extension' && trust !== 'blocked' && fetched && SHA.test(source.ref) && compatible !== false,
    ...(engines !== undefined && { engines }),
    ...(compatible !== undefined && { compatible }),
    ...(fetched && { install: { ...source } }),
  }
}
