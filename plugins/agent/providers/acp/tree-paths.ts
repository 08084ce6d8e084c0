import { posix, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { contains } from '../../../../sdk/node/files/paths.js'
import type { SeenTree } from '../adapter.js'

/** Converts between the absolute paths of a program and paths relative to the root of the tree. */
export class TreePaths {
  #roots: readonly string[] = []

  constructor(tree: Pick<SeenTree, 'root' | 'seen'>) {
    this.show(tree)
  }

  /** The program sees the tree in another place from now on. */
  show({ root, seen }: Pick<SeenTree, 'root' | 'seen'>): void {
    this.#roots = [seen.root, root]
  }

  /** The path in the tree; undefined when it leads elsewhere. The root itself is `.`. */
  within(path: string): string | undefined {
    const plain = posix.normalize(path)
    const root = path.startsWith('/') ? this.#roots.find(each => contains(each, plain)) : undefined
    return root === undefined ? undefined : relative(root, plain) || '.'
  }

  /** The path in the tree of a `file:` address. */
  linked(uri: string): string | undefined {
    try {
      return this.within(fileURLToPath(uri))
    } catch {
      return undefined
    }
  }

  /** The path as the program sees it. */
  seen(path: string): string {
    return path === '.' ? this.#roots[0]! : `${this.#roots[0]}/${path}`
  }

  /** The address of a path as the program sees it. */
  address(path: string): string {
    return pathToFileURL(this.seen(path)).href
  }
}
