import { isUtf8 } from 'node:buffer'
import { leads } from '../../../sdk/index.js'
import { closedAs } from '../../../sdk/node/files/closed-names.js'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { IgnoreRules, isIgnored, pathIn } from './ignore-rules.js'
import { namesOfFolder } from './sweep.js'

const MOST_FOLDERS = 50_000
const SLICE = 200
/** Folders of the root that hold no work of the workspace. */
const LEFT_OUT = new Set(['refs', 'public'])

/** How a walk goes. */
export interface WalkOptions {
  /** The folder it begins in; the root when left out. */
  readonly from?: string
  /** How many folders below that it looks. */
  readonly deepest: number
  /** Receives folders whose name is not UTF-8, which are not entered. */
  readonly unnamed?: (path: string, name: Buffer) => Promise<void>
}

/** A folder of a walk. */
export interface WalkedFolder {
  readonly path: string
  readonly names: ReturnType<typeof namesOfFolder>
  /** Set it to false to leave out what is in the folder. */
  enter: boolean
}

/**
 * The folders on the way to what a reach has, level by level, at most 50,000; not hidden and ignored ones, links, and
 * `refs` and `public` of the root.
 */
export async function* walkFolders(
  { root, reach }: PathTree,
  { from = '.', deepest, unnamed }: WalkOptions,
): AsyncGenerator<WalkedFolder> {
  const rules = new IgnoreRules(root)
  let level = [from]
  let looked = 0
  for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
    const next: string[] = []
    for (const path of level) {
      if (++looked > MOST_FOLDERS) return
      if (looked % SLICE === 0) await new Promise<void>(resolve => setImmediate(resolve))
      const folder: WalkedFolder = { path, names: namesOfFolder(root, path), enter: true }
      yield folder
      if (!folder.enter) continue
      const scope = rules.in(path)
      for (const entry of folder.names) {
        const name = entry.name.toString()
        const below = pathIn(path, name)
        if (!entry.isDirectory() || name.startsWith('.') || closedAs(below.split('/')) !== undefined) continue
        if ((path === '.' && LEFT_OUT.has(name)) || !leads(reach, below) || isIgnored(scope, below, true)) continue
        if (isUtf8(entry.name)) next.push(below)
        else await unnamed?.(path, entry.name)
      }
    }
    level = next
  }
}
