import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { entryExists, foldersIn, inRealFolder } from '../../../sdk/node/files/real-folders.js'
import { git } from '../../../sdk/node/programs/git.js'
import { DEPENDENCY_FOLDERS, foldersWithGit } from '../../../sdk/node/repositories/folders-with-git.js'
import type { CodeFolder } from '../../../sdk/node/transport/code-folder.js'
import { MANIFEST_FILE, readExtension, type ParsedExtension } from '../manifest/parse.js'
import { everyGitdir } from '../../../sdk/node/wall/gitdirs.js'

const GIT_MS = 30_000
/** How deep below the root of a repository an extension is looked for. */
const DEPTH = 3
/** The most folders that are looked into in one tree. */
const MOST_IN_TREE = 2_000
const SOURCE = /\.(?:[cm]?tsx?|jsx|vue|svelte|css|html)$/

/** What git knows of a folder. */
export interface GitState {
  readonly branch: string
  readonly uncommitted: number
}

/** Asks git for a folder of the workspace, behind the wall; throws where it cannot be read. */
export const gitStateOf = async (host: Pick<Host, 'place'>, path: string): Promise<GitState> => {
  const { workspace, data, hidden, grants } = host.place
  const root = await realpath(workspace)
  const exposed = await everyGitdir(data)
  const wall = { workspace: root, data, hide: hidden, grants, exposed, sealed: true, offline: true }
  const args = ['status', '--porcelain', '--branch', '--untracked-files=all', '--', '.']
  const { text } = await git(join(root, path), args, { wall, timeoutMs: GIT_MS, env: { GIT_LITERAL_PATHSPECS: '1' } })
  const [head = '', ...lines] = text.split('\n').filter(Boolean)
  const branch = /^## (?:No commits yet on )?(.+?)(?:\.\.\.\S+)?(?: \[.*\])?$/.exec(head)?.[1] ?? ''
  return { branch: branch.startsWith('HEAD ') ? '' : branch, uncommitted: lines.length }
}

/** A folder with a manifest that can be used. */
export interface FoundCheckout {
  readonly path: string
  readonly parsed: ParsedExtension
}

/** How much of several trees is still searched. */
export interface SearchLeft {
  folders: number
  found: number
}

/** The folders of repositories that hold a manifest, by their paths from the root of a tree. */
export async function* extensionsIn(root: string, left: SearchLeft): AsyncGenerator<FoundCheckout> {
  const seen = new Set<string>()
  for await (const repository of foldersWithGit(root)) {
    let level = [repository]
    for (let depth = 0; depth <= DEPTH && level.length > 0; depth++) {
      const next: string[] = []
      for (const path of level) {
        if (seen.has(path)) continue
        seen.add(path)
        if (seen.size > MOST_IN_TREE || --left.folders < 0 || left.found <= 0) return
        const [there, below] = await lookInto(root, path)
        next.push(...below)
        const parsed = there ? await readExtension(join(root, path), path.split('/').at(-1) || 'root') : undefined
        if (!parsed || 'error' in parsed) continue
        left.found--
        yield { path: path || '.', parsed }
      }
      level = next
    }
  }
}

const lookInto = async (root: string, path: string): Promise<readonly [boolean, readonly string[]]> => {
  const segments = path === '' ? [] : segmentsOf(path)
  const seen = await inRealFolder(root, segments, {}, async at => {
    const names = (await foldersIn(at)).filter(
      name => !name.startsWith('.') && !DEPENDENCY_FOLDERS.has(name) && !isClosedName([...segments, name]),
    )
    return [await entryExists(join(at, MANIFEST_FILE)), names.map(name => (path ? `${path}/${name}` : name))] as const
  })
  return seen ?? [false, []]
}

/** The bundles that a manifest names. */
export const bundlesOf = ({ manifest }: Pick<ParsedExtension, 'manifest'>): string[] =>
  [manifest.entry, manifest.server].filter(path => path !== undefined)

/** Whether a source is newer than the oldest bundle. */
export const isStale = ({ files }: Pick<CodeFolder, 'files'>, bundles: readonly string[]): boolean => {
  const built = bundles.flatMap(path => files.get(path) ?? []).map(changedAt)
  if (built.length === 0) return false
  const oldest = Math.min(...built)
  return [...files].some(([path, mark]) => SOURCE.test(path) && !bundles.includes(path) && changedAt(mark) > oldest)
}

/** In ms: the last part of the stamp is the time of the change in ns. */
const changedAt = ({ stamp }: { readonly stamp: string }): number => Number(stamp.split(' ').at(-1)) / 1e6
