import { posix } from 'node:path'
import { sweepTree } from '../tree/sweep.js'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import type { NamedModule, PackageEdge, PackageGraph, WorkspacePackage } from './contract.js'
import { manifestsIn, type ReadManifest } from './manifests.js'

const DEEPEST = 4
const MOST_PACKAGES = 5_000
const TYPES = ['prod', 'dev', 'peer'] as const

/** The folders of a repository to a depth, from its root; those of other repositories are left out. */
const foldersOf = async (tree: PathTree, repo: string, others: readonly string[]): Promise<string[]> => {
  const found = ['']
  for await (const { path, kind } of sweepTree(tree, { from: repo })) {
    if (kind !== 'folder') continue
    const dir = repo === '.' ? path : path.slice(repo.length + 1)
    if (dir.split('/').length > DEEPEST) continue
    if (others.some(other => other !== repo && (path === other || path.startsWith(`${other}/`)))) continue
    found.push(dir)
  }
  return found.sort()
}

const inRepo = (repo: string, dir: string): string => (dir === '' ? repo : repo === '.' ? dir : `${repo}/${dir}`)

/** The folders of a repository whose manifest gives them a name. */
export const namedFolders = async (tree: PathTree, repo: string, repos: readonly string[]): Promise<NamedModule[]> => {
  const modules: NamedModule[] = []
  for (const dir of await foldersOf(tree, repo, repos)) {
    const name = (await manifestsIn(tree, inRepo(repo, dir), false)).find(each => each.name !== undefined)?.name
    if (name !== undefined) modules.push({ dir, name })
    if (modules.length >= MOST_PACKAGES) break
  }
  return modules
}

/** Whether patterns of a workspace of packages name a folder. */
export const isMember = (dir: string, members: readonly string[]): boolean => {
  const plain = members.filter(each => !each.startsWith('!'))
  const out = members.filter(each => each.startsWith('!')).map(each => each.slice(1))
  const fits = (pattern: string) => posix.matchesGlob(dir, pattern.replace(/^\.\//, '').replace(/\/$/, ''))
  return plain.some(fits) && !out.some(fits)
}

interface FoundPackage extends WorkspacePackage {
  readonly manifest: ReadManifest
}

const edgesOf = (packages: readonly FoundPackage[]): PackageEdge[] => {
  const names = new Set(packages.map(({ name }) => name))
  return packages.flatMap(({ name: from, manifest: { uses } }) =>
    TYPES.flatMap(type =>
      [...new Set(uses[type])].filter(to => to !== from && names.has(to)).map(to => ({ from, to, type })),
    ),
  )
}

/** The packages of a repository that is a workspace of packages, and which uses which. */
export const graphOf = async (tree: PathTree, repo: string, repos: readonly string[]): Promise<PackageGraph> => {
  const top = await manifestsIn(tree, repo, true)
  const members = top.flatMap(each => each.members ?? [])
  if (members.length === 0) return { packages: [], edges: [] }
  const found: FoundPackage[] = []
  for (const dir of await foldersOf(tree, repo, repos)) {
    if (dir === '' ? !members.includes('.') : !isMember(dir, members)) continue
    const manifest = (await manifestsIn(tree, inRepo(repo, dir), true)).find(each => each.name !== undefined)
    if (manifest?.name === undefined || found.some(({ name }) => name === manifest.name)) continue
    found.push({ name: manifest.name, dir, group: dir.includes('/') ? dir.split('/')[0]! : '', manifest })
    if (found.length >= MOST_PACKAGES) break
  }
  return { packages: found.map(({ name, dir, group }) => ({ name, dir, group })), edges: edgesOf(found) }
}
