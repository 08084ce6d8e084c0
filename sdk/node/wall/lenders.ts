import { realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { readPlain } from '../files/files.js'
import { contains } from '../files/paths.js'
import { gitdirsIn } from './gitdirs.js'
import type { WallSpec } from './spec.js'

/** How deep git follows alternates (gitrepository-layout(5)). */
const DEEPEST = 5
const MOST = 100

/**
 * The folders that a repository borrows objects from, and that a wall may show: those in the workspace, in git dirs of
 * the daemon, and what the deployment makes visible.
 */
export const lendersOf = async (
  { workspace, data, grants, only }: Pick<WallSpec, 'workspace' | 'data' | 'grants' | 'only'>,
  common: string,
): Promise<string[]> => {
  // Who sees some folders could read files of others through their objects.
  const shown = [...(only ? [] : [workspace, gitdirsIn(data)]), ...(grants?.read ?? []), ...(grants?.write ?? [])]
  const found = new Set<string>()
  const follow = async (objects: string, depth: number): Promise<void> => {
    const lines = (readPlain(join(objects, 'info/alternates')) ?? '').split('\n')
    for (const line of lines.filter(each => each !== '' && !each.startsWith('#'))) {
      const path = await realpath(resolve(objects, line)).catch(() => undefined)
      if (path === undefined || found.has(path) || found.size >= MOST) continue
      if (!shown.some(folder => contains(folder, path))) continue
      found.add(path)
      if (depth < DEEPEST) await follow(path, depth + 1)
    }
  }
  await follow(join(common, 'objects'), 1)
  return [...found]
}
