import { mkdir } from 'node:fs/promises'
import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import {
  openExisting,
  openFile,
  openParent,
  openPath,
  type PathTree,
  shownPath,
} from '../../../sdk/node/files/open-path.js'
import { sharedTree, treeFor, type CallerTree } from '../../../sdk/node/access/caller-tree.js'
import type { WorkspaceChanges } from '../watch/changes.js'
import { servedBytes } from './bytes.js'
import type { FileCalls } from './contract.js'
import { textWindow } from './window.js'
import { bytesOfText, unwritable, writeFileAt } from './write.js'

const MOST_RAW = 25 * 1024 * 1024

/** The trees in which a path is looked for: a private copy, and then the shared tree. */
export const treesFor = async (
  host: Host,
  agent: string | undefined,
  context: Parameters<typeof treeFor>[2],
): Promise<CallerTree[]> => {
  const tree = await treeFor(host, agent, context)
  return tree.conversationId === undefined ? [tree] : [tree, await sharedTree(host, context)]
}

/** The first of some trees that has a path; undefined: none. */
export const treeWith = async (trees: readonly CallerTree[], path: string): Promise<CallerTree | undefined> => {
  for (const tree of trees) {
    await using found = await openPath(tree, path)
    if (found) return tree
  }
  return undefined
}

/** Creates a folder and its missing parents; returns the created ones. */
const makeFolder = async (tree: PathTree, path: string): Promise<string[]> => {
  await using parent = await openParent(tree, path, { make: true })
  const made = pathOfTarget(parent)
  try {
    await mkdir(parent.target)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') return unwritable(path)(error)
    await using there = await openPath(tree, path)
    if (there?.stats.isDirectory()) return [...parent.made]
    return refuse('conflict', `${shownPath(path)} is there already and is no folder`)
  }
  await flushFolder(parent.at)
  return [...parent.made, made]
}

const pathOfTarget = ({ path, name }: { path: string; name: string }): string =>
  path === '.' ? name : `${path}/${name}`

/** Reads and writes single files. */
export const fileCalls = (host: Host, changes: WorkspaceChanges, locks: KeyedMutex): Handlers<FileCalls> => ({
  'GET /workspace/file': async ({ agent, path, ...asked }, context) => {
    const tree = await treeWith(await treesFor(host, agent, context), path)
    if (!tree) return { path }
    await using found = await openExisting(tree, path)
    await using handle = await openFile(found, path)
    return { path, ...(await textWindow(handle, asked)), shared: tree.conversationId === undefined }
  },
  'GET /workspace/raw': async ({ agent, path }, context) => {
    const trees = await treesFor(host, agent, context)
    const tree = (await treeWith(trees, path)) ?? trees[0]!
    await using found = await openExisting(tree, path)
    await (await openFile(found, path)).close()
    return await servedBytes(found, { http: context.http, most: MOST_RAW, again: () => openExisting(tree, found.path) })
  },
  'PUT /workspace/file': async ({ content, encoding = 'utf8', ...file }, context) => {
    const bytes = bytesOfText(content, encoding)
    const tree = await sharedTree(host, context)
    const { changed, ...written } = await locks.with('write', () => writeFileAt(tree, { ...file, bytes }))
    changes.note(changed)
    return written
  },
  'POST /workspace/dir': async ({ path }, context) => {
    changes.note(await makeFolder(await sharedTree(host, context), path))
    return { ok: true }
  },
})
