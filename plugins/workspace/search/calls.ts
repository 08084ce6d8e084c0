import { refuse, type Caller, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { openExisting, shownPath } from '../../../sdk/node/files/open-path.js'
import { sharedTree, type CallerTree } from '../../../sdk/node/access/caller-tree.js'
import type { WorkspaceChanges } from '../watch/changes.js'
import type { SearchCalls, SearchGroup, SearchMode, SearchResult } from './contract.js'
import type { SearchedTexts } from './document-search.js'
import { Engines } from './engines.js'
import type { SearchedFile } from './found.js'
import { includePatterns } from './globs.js'
import { healthOf } from './health.js'
import { WorkspaceIndex } from './index/workspace-index.js'
import { NamedModel } from './named-model.js'
import type { SearchScope } from './search-scope.js'
import { fingerprint, READ_AT_ONCE, shownGroup } from './shown-lines.js'

const DEADLINE_MS = 10_000
const AT_ONCE = 8
const PAGE = 100
const MOST_PAGE = 300
const MOST_PAGE_LINES = 1_000
const MOST_CANDIDATES = 20
const MOST_RELATED = 8
const BEST = 3

type SearchInput = Parameters<SearchCalls['GET /workspace/search']>[0]

interface Cursor {
  readonly of: string
  readonly offset: number
  /** The results before the offset. */
  readonly before: string
}

const callerKey = ({ kind, sessionId, tokenId, actor }: Caller): string => `${kind} ${sessionId ?? tokenId ?? actor}`

const scopeFor = async (
  tree: CallerTree,
  { dir = '.', include = '' }: Pick<SearchInput, 'dir' | 'include'>,
): Promise<SearchScope> => {
  const patterns = includePatterns(include)
  const named = dir.replace(/\/$/, '') || '.'
  if (named === '.') return { dir: '.', patterns, reach: tree.reach }
  await using folder = await openExisting(tree, named, { lists: true })
  if (!folder.stats.isDirectory()) refuse('unprocessable', `dir: expected a folder, found the file ${shownPath(dir)}`)
  return { dir: folder.path, patterns, reach: tree.reach }
}

const readCursor = (text: string | undefined, of: string): Cursor => {
  if (text === undefined) return { of, offset: 0, before: fingerprint([]) }
  try {
    const cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as Cursor
    if (cursor.of === of && Number.isSafeInteger(cursor.offset) && cursor.offset >= 0) return cursor
  } catch {
    // It is refused as any other that is not of this query.
  }
  return refuse('invalid', 'after: expected the cursor of a page of this query, found another text', {
    errors: [{ path: 'after', expected: 'the cursor of a page of this query' }],
  })
}

const pathsBefore = (files: readonly SearchedFile[], offset: number): string =>
  fingerprint(files.slice(0, offset).map(({ path }) => path))

/** Files from an offset on, as many as a page has. */
const pageOf = (files: readonly SearchedFile[], offset: number, limit: number): SearchedFile[] => {
  const page: SearchedFile[] = []
  let lines = 0
  for (const file of files.slice(offset, offset + limit)) {
    if (page.length > 0 && lines + file.lines.length > MOST_PAGE_LINES) break
    page.push(file)
    lines += file.lines.length
  }
  return page
}

const HINTS: { readonly [mode in SearchMode]: string } = {
  q: 'search for other words, or with mode find for text as it is written',
  find: 'search without word or caseSensitive, or with mode q for words in any order',
  files: 'write less of the name, or search with includeIgnored',
  def: 'the name may be defined in a language without a grammar: search with mode find',
  refs: 'search with mode find, which looks into comments and texts too',
  sym: 'write less of the name, or search with mode find',
  ast: 'write the shape as whole code, with $NAME for a part and $$$ for any number of parts',
}

/** Searches the workspace. */
export const searchCalls = (host: Host, changes: WorkspaceChanges, texts: SearchedTexts): Handlers<SearchCalls> => {
  const index = new WorkspaceIndex(host, changes)
  const named = new NamedModel(host, index)
  const running = new Map<string, number>()

  const search = async (input: SearchInput, context: Context): Promise<SearchResult> => {
    const { query, mode = 'q', includeIgnored = false, literal = false, word = false, caseSensitive = false } = input
    const tree = await sharedTree(host, context)
    const scope = await scopeFor(tree, input)
    const of = fingerprint({ query, mode, includeIgnored, literal, word, caseSensitive, ...scope })
    const cursor = readCursor(input.after, of)
    const signal = AbortSignal.any([context.signal, host.signal, AbortSignal.timeout(DEADLINE_MS)])
    const engines = new Engines({ index, texts, named }, { place: host.place, tree, scope, includeIgnored, signal })
    const question = { mode, query, literal, word, caseSensitive }
    let found = await engines.run(question)
    const limit = Math.min(input.limit ?? PAGE, MOST_PAGE)
    let shown = await shownPage(tree, pageOf(found.files, cursor.offset, limit))
    if (shown.stale.length > 0) {
      // The index was outdated for these files: they are read again, and the search is repeated.
      await index.reread(shown.stale)
      found = await engines.run(question)
      shown = await shownPage(tree, pageOf(found.files, cursor.offset, limit))
    }
    const { files } = found
    const total = files.reduce((sum, { count }) => sum + count, 0)
    const end = cursor.offset + shown.read
    const truncated = end < files.length
    const capped = files.some(file => file.capped)
    const moved = cursor.before !== pathsBefore(files, cursor.offset)
    const note = moved
      ? 'the files changed since the first page: it goes on at its place in the present order'
      : found.note
    return {
      mode,
      total,
      files: files.length,
      shown: shown.groups.reduce((sum, { hits }) => sum + hits.length, 0),
      groups: shown.groups,
      freshness: found.freshness,
      truncated,
      partial: found.partial || capped,
      ...(truncated && { cursor: cursorAt({ of, offset: end, before: pathsBefore(files, end) }) }),
      ...(total === 0 && { hint: HINTS[mode] }),
      ...(note !== undefined && { note }),
      related: await relatedTo(shown.groups, mode),
      candidates: files.slice(end, end + MOST_CANDIDATES).map(({ path }) => path),
      features: [...found.features],
    }
  }

  /** Other definitions of the best files. */
  const relatedTo = async (groups: readonly SearchGroup[], mode: SearchMode): Promise<string[]> => {
    if (groups.length === 0 || !['q', 'def', 'refs', 'sym'].includes(mode)) return []
    const { value } = await index.ask('defined', { paths: groups.slice(0, BEST).map(({ path }) => path) })
    const shown = groups
      .slice(0, BEST)
      .flatMap(({ hits }) => hits.map(({ text }) => text))
      .join('\n')
    return [...new Set(value)].filter(name => !shown.includes(name)).slice(0, MOST_RELATED)
  }

  return {
    'GET /workspace/search': async (input, context) => {
      const key = callerKey(context.caller)
      const now = running.get(key) ?? 0
      if (now >= AT_ONCE)
        refuse('too-many', `${AT_ONCE} searches of yours are running: wait for one to end`, { retryAfter: 1 })
      running.set(key, now + 1)
      try {
        return await search(input, context)
      } finally {
        const left = running.get(key)! - 1
        if (left > 0) running.set(key, left)
        else running.delete(key)
      }
    },
    'workspace.find': async (
      { root, folders, query, mode, literal = false, caseSensitive = false, ...within },
      context,
    ) => {
      const tree: CallerTree = { root, reach: folders, readsGit: false }
      const scope = await scopeFor(tree, within)
      const signal = AbortSignal.any([context.signal, host.signal, AbortSignal.timeout(DEADLINE_MS)])
      const engines = new Engines({ index, texts }, { place: host.place, tree, scope, includeIgnored: false, signal })
      const { files, note } = await engines.run({ mode, query, literal, word: false, caseSensitive })
      const { groups } = await shownPage(tree, pageOf(files, 0, PAGE))
      return { groups, files: files.length, ...(note !== undefined && { note }) }
    },
    'GET /workspace/health': async (input, context) => healthOf(await sharedTree(host, context), index, input),
  }
}

const cursorAt = (cursor: Cursor): string => Buffer.from(JSON.stringify(cursor)).toString('base64url')

const shownPage = async (
  tree: CallerTree,
  files: readonly SearchedFile[],
): Promise<{ groups: SearchGroup[]; stale: string[]; read: number }> => {
  const slots = new Semaphore(READ_AT_ONCE)
  const shown = await Promise.all(files.map(file => slots.run(() => shownGroup(tree, file))))
  return {
    groups: shown.map(({ group }) => group).filter(({ hits }) => hits.length > 0),
    stale: shown.filter(({ stale }) => stale).map(({ group }) => group.path),
    read: files.length,
  }
}
