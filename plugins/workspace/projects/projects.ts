import { accessTo } from '../../../sdk/index.js'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { manifestAt } from '../repositories/manifests.js'
import { isMember } from '../repositories/packages.js'
import { walkFolders, type WalkedFolder } from '../tree/folders.js'
import { namesOfFolder } from '../tree/sweep.js'
import type { Ecosystem } from './contract.js'
import { ecosystemsOf, projectFiles, packageManagerOf, type FoundManager } from './managers.js'

const DEEPEST = 4

/** A project in its folder. */
export interface Project extends FoundManager {
  /** Its path from the root; `.` for the root. */
  readonly path: string
  /** The folders of its packages that are installed with it, besides its own. */
  readonly members: readonly string[]
}

interface Covering extends Project {
  readonly members: string[]
  readonly patterns: readonly string[]
}
type Around = { readonly [ecosystem in Ecosystem]?: Covering }

const parentOf = (path: string): string => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.')
const below = (folder: string, path: string): string => (folder === '.' ? path : path.slice(folder.length + 1))

const namesIn = (names: WalkedFolder['names']): Set<string> =>
  new Set(names.flatMap(entry => (entry.isFile() || entry.isSymbolicLink() ? [entry.name.toString()] : [])))

const patternsOf = async (tree: PathTree, path: string, ecosystem: Ecosystem): Promise<readonly string[]> => {
  const files = { node: ['package.json', 'pnpm-workspace.yaml'], rust: ['Cargo.toml'], python: ['pyproject.toml'] }
  const known = (files as { [ecosystem in Ecosystem]?: readonly string[] })[ecosystem] ?? []
  return (await Promise.all(known.map(file => manifestAt(tree, path, file)))).flatMap(found => found?.members ?? [])
}

/** The topmost project of each language on every branch from a folder on, anew in each repository. */
export const projectsBelow = async (tree: PathTree, from = '.'): Promise<Project[]> => {
  const found: Covering[] = []
  const around = new Map<string, Around>()
  for await (const { path, names } of walkFolders(tree, { from, deepest: DEEPEST })) {
    const begins = path === from || names.some(({ name }) => name.toString() === '.git')
    const above: Around = begins ? {} : (around.get(parentOf(path)) ?? {})
    const here: { [ecosystem in Ecosystem]?: Covering } = { ...above }
    const files = projectFiles(tree, path, namesIn(names))
    for (const ecosystem of accessTo(tree.reach, path) === undefined ? [] : ecosystemsOf(files)) {
      const covering = above[ecosystem]
      if (covering) {
        if (isMember(below(covering.path, path), covering.patterns)) covering.members.push(path)
        continue
      }
      const manager = await packageManagerOf(files, ecosystem)
      if (!manager) continue
      const project: Covering = {
        ...manager,
        path,
        members: [],
        patterns: await patternsOf(tree, path, ecosystem),
      }
      here[ecosystem] = project
      found.push(project)
    }
    around.set(path, here)
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

/** The projects of one folder, whatever is above it. */
export const projectsAt = async (tree: PathTree, path: string): Promise<Project[]> => {
  const files = projectFiles(tree, path, namesIn(namesOfFolder(tree.root, path)))
  const managers = await Promise.all(ecosystemsOf(files).map(ecosystem => packageManagerOf(files, ecosystem)))
  return managers.flatMap(manager => (manager ? [{ ...manager, path, members: [] }] : []))
}
