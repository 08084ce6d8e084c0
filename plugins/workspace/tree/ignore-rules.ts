import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { readPlain } from '../../../sdk/node/files/files.js'
import { isWithin } from '../../../sdk/index.js'

interface Layer {
  /** The folder whose rules these are, as a path from the root. */
  readonly base: string
  readonly rules: Ignore
}

/** Which rules decide in a folder: those of the folders above it up to the nearest repository, innermost last. */
export interface IgnoreScope {
  readonly layers: readonly Layer[]
  /** The folder itself is ignored, and so is all below it. */
  readonly ignored: boolean
}

/** Folders that tools fill, ignored without a rule. */
const FILLED = new Set(['node_modules', '.venv', '__pycache__'])
const MOST_RULES = 256 * 1024

const layerOf = (base: string, text: string): Layer => ({
  base,
  rules: ignore({ ignorecase: false, allowRelativePaths: true }).add(text),
})

const inRoot = (path: string, name: string): string => (path === '.' ? name : `${path}/${name}`)

const relativeTo = (base: string, path: string): string => (base === '.' ? path : path.slice(base.length + 1))

/** Whether tools ignore a name of a folder; `path` is its path from the root. */
export const isIgnored = ({ layers, ignored }: IgnoreScope, path: string, folder: boolean): boolean => {
  if (ignored || FILLED.has(path.slice(path.lastIndexOf('/') + 1))) return true
  for (const { base, rules } of layers.toReversed()) {
    const found = rules.test(relativeTo(base, path) + (folder ? '/' : ''))
    if (found.ignored) return true
    if (found.unignored) return false
  }
  return false
}

const NOTHING: IgnoreScope = { layers: [], ignored: false }

/** The rules in a folder, including those of its parents; `at` is the path to read its files from. */
const scopeBelow = (around: IgnoreScope, path: string, at: string): IgnoreScope => {
  const ignored = path !== '.' && isIgnored(around, path, true)
  const git = lstatSync(join(at, '.git'), { throwIfNoEntry: false })
  const exclude = git?.isDirectory() ? readPlain(join(at, '.git/info/exclude'), MOST_RULES) : undefined
  const file = join(at, '.gitignore')
  const own = lstatSync(file, { throwIfNoEntry: false })?.isFile() ? readPlain(file, MOST_RULES) : undefined
  const added = [exclude, own].flatMap(text => (text ? [layerOf(path, text)] : []))
  if (!git && added.length === 0) return ignored === around.ignored ? around : { ...around, ignored }
  return { layers: [...(git ? [] : around.layers), ...added], ignored: ignored && !git }
}

/** The rules of a tree's folders, each read once: for one walk. */
export class IgnoreRules {
  readonly #root: string
  readonly #known = new Map<string, IgnoreScope>()

  constructor(root: string) {
    this.#root = root
  }

  /** The rules that decide in a folder. */
  in(path: string): IgnoreScope {
    const known = this.#known.get(path)
    if (known) return known
    const around = path === '.' ? NOTHING : this.in(path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.')
    let found = around
    try {
      found = scopeBelow(around, path, join(this.#root, path))
    } catch {
      // A folder that is closed or gone has no rules.
    }
    this.#known.set(path, found)
    return found
  }

  /** Whether tools ignore a path. */
  ignores(path: string, folder: boolean): boolean {
    if (path === '.') return false
    return isIgnored(this.in(path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.'), path, folder)
  }

  /** Forgets the rules of one folder. */
  delete(path: string): void {
    this.#known.delete(path)
  }

  /** Forgets the rules of a folder and all below it. */
  drop(path: string): void {
    for (const known of this.#known.keys()) if (isWithin(path, known)) this.#known.delete(known)
  }
}

/** The path of a name in a folder. */
export const pathIn = inRoot
