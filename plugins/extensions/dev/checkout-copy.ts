import { lstat, mkdir, readdir, readlink, symlink, writeFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { inRealFolder, plainBytes } from '../../../sdk/node/files/real-folders.js'
import { leavesFolder, MOST_BYTES, MOST_FILES } from '../../../sdk/node/transport/code-folder.js'

/** Folders of a checkout that are no part of what runs. */
export const NOT_COPIED: ReadonlySet<string> = new Set(['.git', 'node_modules'])

/**
 * Copies a folder of the workspace, reached name by name without following a link; false: there is no such folder.
 *
 * Links inside stay links. Refuses one that leaves the folder, and more than an extension may have.
 */
export const copyCheckout = async (workspace: string, segments: readonly string[], to: string): Promise<boolean> => {
  const left: string[][] = [[]]
  let [files, bytes] = [0, 0]
  const counted = (size: number): void => {
    files++
    bytes += size
    if (files > MOST_FILES || bytes > MOST_BYTES)
      refuse('too-large', `the folder has more than ${MOST_FILES} files or ${MOST_BYTES} bytes`)
  }
  const copyFolder = (below: readonly string[]) =>
    inRealFolder(workspace, [...segments, ...below], {}, async at => {
      const target = join(to, ...below)
      await mkdir(target, { recursive: true, mode: 0o700 })
      for (const entry of await readdir(at, { withFileTypes: true })) {
        const { name } = entry
        if (NOT_COPIED.has(name)) continue
        if (entry.isDirectory()) left.push([...below, name])
        else if (entry.isSymbolicLink()) {
          const link = await readlink(join(at, name))
          const path = posix.join(...below, name)
          if (leavesFolder(path, link)) refuse('unprocessable', `${path} is a link that leaves its folder`)
          counted(0)
          await symlink(link, join(target, name))
        } else if (entry.isFile()) {
          const [{ mode }, content] = [await lstat(join(at, name)), await plainBytes(join(at, name), MOST_BYTES)]
          if (!content) continue
          counted(content.length)
          await writeFile(join(target, name), content, { mode: mode & 0o100 ? 0o700 : 0o600 })
        }
      }
      return true
    })
  for (let below = left.pop(); below !== undefined; below = left.pop()) {
    const found = await copyFolder(below)
    if (!found && below.length === 0) return false
  }
  return true
}
