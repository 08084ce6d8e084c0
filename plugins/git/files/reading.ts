import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { pathOfRepo, refuse } from '../../../sdk/index.js'
import { resolvePath } from '../../../sdk/node/files/workspace-paths.js'
import type { Objects } from '../objects/objects.js'
import { isLink, isModule } from '../objects/tree-entries.js'
import { checkedPath } from '../repositories/names.js'
import { pathFor, type OpenRepo } from '../repositories/repositories.js'
import type { RepoFile } from './contract.js'

const MOST_BYTES = 1024 * 1024

const fileOf = (path: string, bytes: Buffer, sha?: string): RepoFile => {
  const content = bytes.toString()
  const lossy = !Buffer.from(content).equals(bytes)
  return { path, content, ...(sha !== undefined && { sha }), ...(lossy && { lossy: true as const }) }
}

const tooLarge = (path: string): never =>
  refuse('too-large', `${path} is larger than 1 MiB: GET /workspace/file gives a part of it`)

/** Reads a file as it was at a commit, branch or tag. */
export const fileAt = async (objects: Objects, opened: OpenRepo, name: string, ref: string): Promise<RepoFile> => {
  const { git, repo } = opened
  const path = await pathFor(opened, name)
  const entry = await objects.entry(git, await objects.commit(git, ref), path)
  if (!entry) return refuse('not-found', `${repo} has no file ${path} at ${ref}`)
  if (entry.type === 'tree') refuse('unprocessable', `${path} is a folder at ${ref}`)
  if (isModule(entry)) refuse('unprocessable', `${path} is a submodule at ${ref}`)
  if (isLink(entry)) refuse('unprocessable', `${path} is a symbolic link at ${ref}`)
  const { bytes } = await objects.content(git, entry, MOST_BYTES)
  return bytes ? fileOf(path, bytes, entry.id) : tooLarge(path)
}

/** Reads a file from disk; follows links within the workspace. */
export const fileOnDisk = async (opened: OpenRepo, name: string, workspace: string): Promise<RepoFile> => {
  const { repo, view } = opened
  const path = checkedPath(repo, name)
  const absent = (): never => refuse('not-found', `nothing in ${repo} is named ${path}`)
  const found = await resolvePath(workspace, posix.join(pathOfRepo(repo), path))
  if (found.kind === 'outside')
    return view.reach ? absent() : refuse('unprocessable', `${path} leads out of the workspace`)
  if (!('path' in found) || found.kind === 'closed' || !(await view.sees(found.path))) return absent()
  if (found.kind === 'folder') return refuse('unprocessable', `${path} is a folder`)
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW
  const handle = await open(join(workspace, found.path), flags).catch(absent)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) return absent()
    const bytes = Buffer.alloc(MOST_BYTES + 1)
    const { bytesRead } = await handle.read(bytes, 0, MOST_BYTES + 1, 0)
    return bytesRead > MOST_BYTES ? tooLarge(path) : fileOf(path, bytes.subarray(0, bytesRead))
  } finally {
    await handle.close()
  }
}
