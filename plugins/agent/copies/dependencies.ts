import { mkdir, readdir, realpath, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import type { RepositoryScan, FoundRepositories } from '../../../sdk/node/repositories/repository-scan.js'
import { pathOf, type MainRepository } from '../../../sdk/node/repositories/main-repository.js'
import { exists } from './repositories.js'

/** An untracked dependency folder of a main checkout, and its path from the workspace root. */
interface Dependency {
  readonly from: string
  readonly path: string
}

/** The untracked dependencies of main checkouts, with their paths in a copy. */
export const dependenciesOf = async (
  scan: RepositoryScan,
  sources: readonly MainRepository[],
  seen: FoundRepositories,
): Promise<Dependency[]> => {
  const each = await Promise.all(
    sources.map(async source => {
      const paths = await scan.dependencies(source, seen)
      return paths.map(path => ({ from: join(source.dir, path), path: join(pathOf(source.repo), path) }))
    }),
  )
  return each.flat()
}

/** Makes dependencies visible in a copy: by a mount behind the wall, otherwise by links to their contents. */
export const share = async (copy: string, dependencies: readonly Dependency[]): Promise<string[]> => {
  const enforced = (await wallKind()) !== 'none'
  const shown: string[] = []
  for (const { from, path } of dependencies) {
    const place = join(copy, path)
    if (await exists(place)) continue
    await mkdir(place, { recursive: true })
    // To git a link is not a folder: the pattern `node_modules/` would not ignore it.
    if (!enforced) for (const name of await readdir(from)) await symlink(join(from, name), join(place, name))
    shown.push(path)
  }
  return shown
}

/** The dependency folders to mount: those still there, where the copy has no content of its own. */
export const mountable = async (
  workspace: string,
  copy: string,
  shown: readonly string[],
): Promise<{ from: string; to: string }[]> => {
  const found: { from: string; to: string }[] = []
  for (const path of shown) {
    const from = join(workspace, path)
    const place = join(copy, path)
    const [source, target] = await Promise.all([from, place].map(each => realpath(each).catch(() => undefined)))
    if (source !== from || target !== place) continue
    const held = await readdir(place).catch(() => ['?'])
    if (held.length === 0) found.push({ from, to: from })
  }
  return found
}
