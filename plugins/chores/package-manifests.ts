import { readdir } from 'node:fs/promises'
import { join } from 'node:path/posix'
import { fileText } from '../../sdk/node/files/file-text.js'
import type { PathTree } from '../../sdk/node/files/open-path.js'
import type { NamedModule } from '../workspace/contract.js'
import type { ChorePackage, PackageEngines } from './contract.js'

type Value = unknown

const MOST_BYTES = 1024 * 1024
const MOST_NAMES = 500
const README = /^readme(?:\.\w+)?$/i

const at = (value: Value, ...keys: string[]): Value =>
  keys.reduce<Value>(
    (found, key) =>
      typeof found === 'object' && found !== null ? (found as { [key: string]: unknown })[key] : undefined,
    value,
  )
const keysAt = (value: Value, ...keys: string[]): string[] => {
  const found = at(value, ...keys)
  return typeof found === 'object' && found !== null && !Array.isArray(found) ? Object.keys(found) : []
}
const textsAt = (value: Value, ...keys: string[]): string[] => {
  const found = at(value, ...keys)
  return Array.isArray(found) ? found.filter(each => typeof each === 'string') : []
}

type Described = Pick<ChorePackage, 'engines' | 'dependencies' | 'devDependencies'>

const enginesOf = (engines: { readonly [runtime: string]: Value }): { engines?: PackageEngines } => {
  const texts = Object.entries(engines).filter((each): each is [string, string] => typeof each[1] === 'string')
  return texts.length > 0 ? { engines: Object.fromEntries(texts.slice(0, 20)) } : {}
}

/** A requirement such as `requests[x]>=2` by its name alone (PEP 508). */
const nameOf = (requirement: string): string => /^[A-Za-z0-9._-]+/.exec(requirement)?.[0] ?? requirement

const toml = async (text: string): Promise<Value> => (await import('smol-toml')).parse(text)

/** The manifests that say which packages they need; the first one that is there counts. */
const READERS: { readonly [file: string]: (text: string) => Promise<Described> | Described } = {
  'package.json': text => {
    const value = JSON.parse(text.replace(/^\ufeff/, '')) as Value
    const engines = at(value, 'engines')
    return {
      ...(typeof engines === 'object' && engines !== null && enginesOf(engines as { [runtime: string]: Value })),
      dependencies: [...keysAt(value, 'dependencies'), ...keysAt(value, 'optionalDependencies')],
      devDependencies: keysAt(value, 'devDependencies'),
    }
  },
  'Cargo.toml': async text => {
    const value = await toml(text)
    return {
      ...enginesOf({ rust: at(value, 'package', 'rust-version') }),
      dependencies: [...keysAt(value, 'dependencies'), ...keysAt(value, 'build-dependencies')],
      devDependencies: keysAt(value, 'dev-dependencies'),
    }
  },
  'pyproject.toml': async text => {
    const value = await toml(text)
    const groups = at(value, 'dependency-groups')
    return {
      ...enginesOf({ python: at(value, 'project', 'requires-python') }),
      dependencies: textsAt(value, 'project', 'dependencies').map(nameOf),
      devDependencies: keysAt(groups).flatMap(group => textsAt(groups, group).map(nameOf)),
    }
  },
}

const describedIn = async (tree: PathTree, folder: string): Promise<Described> => {
  for (const [file, read] of Object.entries(READERS)) {
    const text = await fileText(tree, join(folder, file), MOST_BYTES)
    if (text === undefined) continue
    try {
      return await read(text)
    } catch {
      // A malformed manifest names nothing.
    }
  }
  return { dependencies: [], devDependencies: [] }
}

/** What the manifest of a folder says of its package. */
export const packageIn = async (tree: PathTree, repo: string, { dir, name }: NamedModule): Promise<ChorePackage> => {
  const folder = join(repo, dir)
  const [{ dependencies, devDependencies, engines }, names] = await Promise.all([
    describedIn(tree, folder),
    readdir(join(tree.root, folder)).catch(() => [] as string[]),
  ])
  return {
    ...{ dir, name },
    ...(engines && { engines }),
    dependencies: dependencies.slice(0, MOST_NAMES),
    devDependencies: devDependencies.slice(0, MOST_NAMES),
    documented: names.some(each => README.test(each)),
  }
}
