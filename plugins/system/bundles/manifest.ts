import { Refusal } from '../../../sdk/index.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'

/** One file or link of an archive; the list has the order of the archive. */
export interface BundleEntry {
  readonly path: string
  readonly size: number
  /** SHA-256 of the content, base64url; of a link, of its target. */
  readonly sha256: string
  /** It can be run. */
  readonly runs?: true
  /** It is a link. */
  readonly link?: string
}

/** A repository of the workspace. */
export interface BundleRepository {
  /** `root`, or its folder from the workspace root. */
  readonly repo: string
  /** The entry with all its commits; absent where it had none. */
  readonly history?: string
  /** `refs/heads/…`, or a commit. */
  readonly head: string
  readonly remotes: readonly { readonly name: string; readonly url: string }[]
  readonly branches: readonly { readonly name: string; readonly remote: string; readonly merge: string }[]
}

/** What an archive holds and where it is from: its first entry. */
export interface BundleManifest {
  readonly format: 'sandbox-bundle'
  readonly version: 1
  readonly from: {
    readonly name?: string
    readonly sandboxId: string
    readonly version: string
    readonly createdAt: number
  }
  /** Whether it holds the whole workspace, or only the repositories named. */
  readonly whole: boolean
  readonly secrets: boolean
  readonly repositories: readonly BundleRepository[]
  /** The groups that contributed, each with its format version. */
  readonly groups: readonly { readonly group: string; readonly version: number }[]
  readonly entries: readonly BundleEntry[]
}

export const MANIFEST = 'manifest.json'
/** Where entries lie in the archive. */
export const IN = { workspace: 'workspace/', history: 'history/', state: 'state/' } as const

const MOST_ENTRIES = 500_000
const GROUP = /^[a-z][a-z0-9-]{0,63}$/
const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/
const REF = /^refs\/heads\/[^\s~^:?*[\\\x00-\x20\x7f]+$/

const wrong = (what: string): never => {
  throw new Refusal('unprocessable', `this is not a bundle a sandbox made: ${what}`)
}

type Json = { readonly [key: string]: unknown }
const object = (value: unknown, what: string): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Json)
    : wrong(`${what} is not an object`)
const list = (value: unknown, what: string): readonly unknown[] =>
  Array.isArray(value) ? value : wrong(`${what} is not a list`)
const text = (value: unknown, what: string, most = 4096): string =>
  typeof value === 'string' && value.length <= most && value.isWellFormed() && !value.includes('\0')
    ? value
    : wrong(`${what} is not a text`)
const count = (value: unknown, what: string): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    ? value
    : wrong(`${what} is not a whole number`)

/** Parses a manifest and validates every field, because its origin is unknown. */
export const parseBundleManifest = (json: string): BundleManifest => {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    wrong('its manifest is not JSON')
  }
  const given = object(value, 'its manifest')
  if (given.format !== 'sandbox-bundle') wrong('its manifest names another format')
  if (given.version !== 1) {
    throw new Refusal(
      'unprocessable',
      `this bundle has version ${String(given.version).slice(0, 20)}, `
        + 'and this sandbox reads version 1: update it first',
    )
  }
  const from = object(given.from, 'from')
  const entries = list(given.entries, 'entries')
  if (entries.length > MOST_ENTRIES)
    throw new Refusal('too-large', `a bundle may have ${MOST_ENTRIES} entries, and this one has ${entries.length}`)
  const manifest: BundleManifest = {
    format: 'sandbox-bundle',
    version: 1,
    whole: given.whole === true,
    secrets: given.secrets === true,
    from: {
      sandboxId: text(from.sandboxId, 'from.sandboxId', 64),
      version: text(from.version, 'from.version', 64),
      createdAt: count(from.createdAt, 'from.createdAt'),
      ...(from.name !== undefined && { name: text(from.name, 'from.name', 200) }),
    },
    repositories: list(given.repositories, 'repositories').map(repositoryOf),
    groups: list(given.groups, 'groups').map(each => {
      const { group, version } = object(each, 'a group')
      const name = text(group, 'a group', 64)
      return GROUP.test(name)
        ? { group: name, version: count(version, 'the version of a group') }
        : wrong(`a group is named ${JSON.stringify(name)}`)
    }),
    entries: entries.map(entryOf),
  }
  checkPaths(manifest)
  return manifest
}

const entryOf = (value: unknown): BundleEntry => {
  const { path, size, sha256, runs, link } = object(value, 'an entry')
  return {
    path: text(path, 'the path of an entry'),
    size: count(size, 'the size of an entry'),
    sha256: text(sha256, 'the checksum of an entry', 43),
    ...(runs === true && { runs }),
    ...(link !== undefined && { link: text(link, 'the target of a link') }),
  }
}

const repositoryOf = (value: unknown): BundleRepository => {
  const given = object(value, 'a repository')
  const repo = text(given.repo, 'a repository')
  const head = text(given.head, 'the head of a repository')
  if (!REF.test(head) && !COMMIT.test(head)) wrong(`the head of a repository is ${JSON.stringify(head.slice(0, 80))}`)
  return {
    repo,
    head,
    ...(given.history !== undefined && { history: text(given.history, 'the history of a repository') }),
    remotes: list(given.remotes, 'remotes').map(each => {
      const { name, url } = object(each, 'a remote')
      return { name: text(name, 'the name of a remote', 200), url: text(url, 'the address of a remote') }
    }),
    branches: list(given.branches, 'branches').map(each => {
      const { name, remote, merge } = object(each, 'a branch')
      return {
        name: text(name, 'the name of a branch', 400),
        remote: text(remote, 'the remote of a branch', 200),
        merge: text(merge, 'the upstream of a branch', 400),
      }
    }),
  }
}

/** Every path is in a known folder of the archive, has one entry, and has no other entry as parent. */
const checkPaths = ({ entries, repositories, groups }: BundleManifest): void => {
  const names = new Set<string>()
  for (const { path, link } of entries) {
    if (!Object.values(IN).some(place => path.startsWith(place)))
      wrong(`it has an entry ${JSON.stringify(path.slice(0, 120))}`)
    checkPath(path)
    if (names.has(path)) wrong(`it has two entries ${JSON.stringify(path.slice(0, 120))}`)
    if (link === '' || (link !== undefined && !path.startsWith(IN.workspace)))
      wrong(`it has a link ${JSON.stringify(path.slice(0, 120))}, whose target is not in the workspace`)
    names.add(path)
  }
  const repos = repositories.map(({ repo }) => repo)
  for (const { repo, history } of repositories) {
    if (repo !== 'root') checkPath(repo)
    if (isClosedName(repo.split('/')))
      wrong(`it has a repository ${JSON.stringify(repo.slice(0, 120))}, where none can be`)
    if (history !== undefined && !(history.startsWith(IN.history) && names.has(history)))
      wrong(`the history of ${repo.slice(0, 120)} is missing`)
  }
  checkFolders([
    ...[...names].map(path => ({ path, what: 'a folder', isFile: true })),
    ...repos
      .filter(repo => repo !== 'root')
      .map(repo => ({ path: IN.workspace + repo, what: `the repository ${JSON.stringify(repo.slice(0, 120))}` })),
  ])
  if (new Set(repos).size < repos.length) wrong('it has a repository twice')
  for (const path of names) {
    const group = path.startsWith(IN.state) ? path.slice(IN.state.length).split('/') : undefined
    if (group && (group.length !== 2 || !groups.some(each => each.group === group[0])))
      wrong(`no group has ${JSON.stringify(path.slice(0, 120))}`)
  }
}

/**
 * No file has something below it: in this order what is below a path follows it at once, so that paths of thousands of
 * folders take no longer than others.
 */
const checkFolders = (
  paths: readonly { readonly path: string; readonly what: string; readonly isFile?: boolean }[],
): void => {
  const sorted = paths
    .map(one => ({ ...one, key: one.path.replaceAll('/', '\0') }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.isFile ? -1 : 1))
  for (const [at, { key, isFile, path }] of sorted.entries()) {
    const next = sorted[at + 1]
    if (isFile && next && (next.key === key || next.key.startsWith(`${key}\0`)))
      wrong(`${JSON.stringify(path.slice(0, 120))} is a file or a link in it, and ${next.what} too`)
  }
}

const checkPath = (path: string): void => {
  try {
    segmentsOf(path)
  } catch {
    wrong(`it has the path ${JSON.stringify(path.slice(0, 120))}, which leads out of its folder`)
  }
  if (path.endsWith('/')) wrong(`it has the path ${JSON.stringify(path.slice(0, 120))}, which is a folder's`)
}
