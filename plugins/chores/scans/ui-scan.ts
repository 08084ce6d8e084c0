import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { UiScan } from '../contract.js'
import { filesBelow } from './walk-files.js'

const SOURCE = /\.(?:tsx|jsx|vue|svelte)$/
const TESTS = /(?:^|\/)(?:__tests__|tests?)\/|\.(?:test|spec|stories)\.\w+$/
const SHARED = /(?:^|\/)(?:components|ui)\//
const NOT_ENTERED = /^(?:\..*|node_modules|dist|build|out|coverage|vendor|target)$/
const EXPORTED = /export\s+(?:default\s+)?(?:async\s+)?(?:const|let|function|class)\s+([A-Z]\w*)/g
const MOST_FILES = 50_000
const MOST_SIZE = 512 * 1024
const MOST_COMPONENTS = 300
const MOST_ROWS = 100

/** The elements for which a component stands, by the end of its name. */
const ELEMENTS: readonly (readonly [element: string, names: RegExp])[] = [
  ['button', /Button$/],
  ['input', /(?:Input|Field|Checkbox|Radio)$/],
  ['select', /(?:Select|Dropdown|ChoiceField)$/],
  ['textarea', /(?:Textarea|TextArea|TextField)$/],
  ['dialog', /(?:Dialog|Modal)$/],
  ['table', /(?:Table|DataGrid)$/],
]

const IDIOMS: readonly (readonly [id: string, pattern: RegExp])[] = [
  ['inline-style', /\sstyle=(?:\{\{|"|')/],
  ['literal-color', /(?:color|background|border|fill|stroke)[\w-]*['"]?\s*[:=]\s*['"{]*\s*#[0-9a-f]{3,8}\b/i],
  ['clickable-element', /<(?:div|span|li|td)\b[^>]*\s(?:onClick|on:click|@click)=/],
  ['raw-html', /dangerouslySetInnerHTML|\bv-html=|\{@html\b/],
]

const nameOfFile = (path: string): string | undefined => /([A-Z]\w*)\.(?:vue|svelte)$/.exec(path)?.[1]

/** How the pages in a folder use its shared components; undefined: it has no pages. */
export const uiIn = (root: string): UiScan | undefined => {
  const paths = filesBelow(root, MOST_FILES, name => !NOT_ENTERED.test(name)).filter(
    path => SOURCE.test(path) && !TESTS.test(path) && statSync(join(root, path)).size <= MOST_SIZE,
  )
  if (paths.length === 0) return undefined
  const files = paths.map(path => ({ path, text: readFileSync(join(root, path), 'utf8'), shared: SHARED.test(path) }))
  const components = new Set(
    files
      .filter(({ shared }) => shared)
      .flatMap(({ path, text }) => [
        ...[...text.matchAll(EXPORTED)].map(([, name]) => name!),
        ...[nameOfFile(path) ?? []].flat(),
      ]),
  )
  const stoodFor = ELEMENTS.filter(([, names]) => [...components].some(name => names.test(name))).map(([name]) => name)
  const bare = stoodFor.length > 0 ? new RegExp(`<(?:${stoodFor.join('|')})(?=[\\s/>])`, 'g') : undefined
  const pages = files.filter(({ shared }) => !shared)
  return {
    components: [...components].sort().slice(0, MOST_COMPONENTS),
    bypasses: pages
      .map(({ path, text }) => ({ path, count: bare ? [...text.matchAll(bare)].length : 0 }))
      .filter(({ count }) => count > 0)
      .sort((one, other) => other.count - one.count || (one.path < other.path ? -1 : 1))
      .slice(0, MOST_ROWS),
    idioms: IDIOMS.map(([id, pattern]) => ({
      id,
      files: pages.flatMap(({ path, text }) => (pattern.test(text) ? [path] : [])).slice(0, MOST_ROWS),
    })).filter(({ files: found }) => found.length > 0),
  }
}
