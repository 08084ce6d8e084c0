import { refuse } from '../../../sdk/index.js'
import { fileText } from '../../../sdk/node/files/file-text.js'
import { type PathTree, shownPath } from '../../../sdk/node/files/open-path.js'
import { pathIn } from '../tree/ignore-rules.js'
import type { PackageEdge } from './contract.js'

/** A parsed manifest: its package, and the packages below it. */
export interface ReadManifest {
  readonly name?: string
  /** The names it uses. */
  readonly uses: { readonly [type in PackageEdge['type']]: readonly string[] }
  /** Patterns of the folders of its packages; absent: it is not a workspace of packages. */
  readonly members?: readonly string[]
}

/** A parsed value of a manifest. */
export type ManifestValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | Date
  | readonly ManifestValue[]
  | { readonly [key: string]: ManifestValue }

const MOST = 4 * 1024 * 1024
const NONE = { prod: [], dev: [], peer: [] }

const at = (value: ManifestValue, ...keys: string[]): ManifestValue =>
  keys.reduce<ManifestValue>(
    (found, key) =>
      typeof found === 'object' && found !== null && !Array.isArray(found)
        ? (found as { [key: string]: ManifestValue })[key]
        : undefined,
    value,
  )
/** The text at a place of a manifest. */
export const textAt = (value: ManifestValue, ...keys: string[]): string | undefined => {
  const found = at(value, ...keys)
  return typeof found === 'string' && found !== '' ? found : undefined
}
/** The keys of what is at a place of a manifest. */
export const keysAt = (value: ManifestValue, ...keys: string[]): string[] => {
  const found = at(value, ...keys)
  return typeof found === 'object' && found !== null && !Array.isArray(found) ? Object.keys(found) : []
}
/** The texts of the list at a place of a manifest. */
export const listAt = (value: ManifestValue, ...keys: string[]): string[] | undefined => {
  const found = at(value, ...keys)
  return Array.isArray(found) ? found.filter(each => typeof each === 'string') : undefined
}

const named = (name: string | undefined) => (name === undefined ? {} : { name })
const withMembers = (members: readonly string[] | undefined) => (members ? { members } : {})

const json = (text: string): ManifestValue => JSON.parse(text.replace(/^\ufeff/, '')) as ManifestValue
const toml = async (text: string): Promise<ManifestValue> => (await import('smol-toml')).parse(text) as ManifestValue
const yaml = async (text: string): Promise<ManifestValue> =>
  (await import('yaml')).parse(text, { maxAliasCount: 0 }) as ManifestValue

/** A requirement such as `requests[x]>=2` by its name alone (PEP 508). */
export const pythonName = (requirement: string): string =>
  (/^[A-Za-z0-9._-]+/.exec(requirement)?.[0] ?? '').toLowerCase().replace(/[._-]+/g, '-')

const goWords = (text: string, word: string): string[] => {
  const bare = text.replace(/\/\/.*$/gm, '')
  const blocks = [...bare.matchAll(new RegExp(`^${word}\\s*\\(([^)]*)\\)`, 'gm'))].flatMap(([, body]) =>
    body!.split('\n'),
  )
  const lines = [...bare.matchAll(new RegExp(`^${word}\\s+([^\\s(].*)$`, 'gm'))].map(([, rest]) => rest!)
  return [...blocks, ...lines].flatMap(line => line.trim().split(/\s+/)[0] || [])
}

/** What a JSON, TOML or YAML file holds; undefined when it is malformed. */
export const manifestValue = async (file: string, text: string | undefined): Promise<ManifestValue> => {
  try {
    if (text === undefined) return undefined
    return file.endsWith('.toml') ? await toml(text) : /\.ya?ml$/.test(file) ? await yaml(text) : json(text)
  } catch {
    return undefined
  }
}

/** The readers of manifests, by file name; the first existing one names the folder. */
const READERS: { readonly [file: string]: (text: string) => Promise<ReadManifest> } = {
  'package.json': async text => {
    const value = json(text)
    return {
      ...named(textAt(value, 'name')),
      uses: {
        prod: [...keysAt(value, 'dependencies'), ...keysAt(value, 'optionalDependencies')],
        dev: keysAt(value, 'devDependencies'),
        peer: keysAt(value, 'peerDependencies'),
      },
      ...withMembers(listAt(value, 'workspaces') ?? listAt(value, 'workspaces', 'packages')),
    }
  },
  'pnpm-workspace.yaml': async text => ({ uses: NONE, ...withMembers(listAt(await yaml(text), 'packages')) }),
  'Cargo.toml': async text => {
    const value = await toml(text)
    return {
      ...named(textAt(value, 'package', 'name')),
      uses: {
        prod: [...keysAt(value, 'dependencies'), ...keysAt(value, 'build-dependencies')],
        dev: keysAt(value, 'dev-dependencies'),
        peer: [],
      },
      ...withMembers(listAt(value, 'workspace', 'members')),
    }
  },
  'pyproject.toml': async text => {
    const value = await toml(text)
    const groups = at(value, 'dependency-groups')
    return {
      ...named(textAt(value, 'project', 'name') ?? textAt(value, 'tool', 'poetry', 'name')),
      uses: {
        prod: (listAt(value, 'project', 'dependencies') ?? []).map(pythonName),
        dev: keysAt(groups).flatMap(group => (listAt(groups, group) ?? []).map(pythonName)),
        peer: [],
      },
      ...withMembers(listAt(value, 'tool', 'uv', 'workspace', 'members')),
    }
  },
  'go.mod': async text => ({
    ...named(goWords(text, 'module')[0]),
    uses: { prod: goWords(text, 'require'), dev: [], peer: [] },
  }),
  'go.work': async text => ({ uses: NONE, members: goWords(text, 'use').map(path => path.replace(/^\.\//, '')) }),
  'composer.json': async text => {
    const value = json(text)
    const uses = { prod: keysAt(value, 'require'), dev: keysAt(value, 'require-dev'), peer: [] }
    return { ...named(textAt(value, 'name')), uses }
  },
}

/** The text of a manifest or lock file of at most 4 MiB; undefined when there is none that can be read. */
export const manifestText = (tree: PathTree, path: string): Promise<string | undefined> => fileText(tree, path, MOST)

/** What one manifest says; undefined when there is none, or it is malformed. */
export const manifestAt = async (tree: PathTree, folder: string, file: string): Promise<ReadManifest | undefined> => {
  const text = await manifestText(tree, pathIn(folder, file))
  return text === undefined ? undefined : READERS[file]!(text).catch(() => undefined)
}

/** The parsed manifests of a folder; `strict` refuses an invalid one. */
export const manifestsIn = async (tree: PathTree, folder: string, strict: boolean): Promise<ReadManifest[]> => {
  const found: ReadManifest[] = []
  for (const [file, read] of Object.entries(READERS)) {
    const path = pathIn(folder, file)
    const text = await manifestText(tree, path)
    if (text === undefined) continue
    try {
      found.push(await read(text))
    } catch (error) {
      if (strict)
        refuse(
          'unprocessable',
          `${shownPath(path)} cannot be read: ${(error as Error).message.split('\n')[0]!.replace(/[.:\s]+$/, '')}`,
        )
    }
  }
  return found
}
