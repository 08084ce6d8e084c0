import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { TEMPORARY } from '../../../sdk/node/files/files.js'
import { cut, textContent } from './content.js'
import { looksLikeText, readableText } from './file-form.js'
import { withHashes } from './line-hashes.js'
import { done, failed, tool } from './tool.js'
import { inTreeFolder, readFileAt } from './tree.js'

const MOST_RESULT = 256 * 1024
const MOST_ROWS = 2000
const UNOPENED = new Set(['.git', 'node_modules'])

const PICTURES: readonly (readonly [kind: string, from: number, magic: string])[] = [
  ['PNG', 0, '\x89PNG\r\n'],
  ['JPEG', 0, '\xff\xd8\xff'],
  ['GIF', 0, 'GIF8'],
  ['WebP', 8, 'WEBP'],
]

/** Reads a file, or some lines of it; shows a picture, and describes other binary files. */
export const readFile = tool('Read', {
  category: 'read',
  describe: ({ path, offset }) => ({
    target: path,
    path,
    locations: [{ path, ...(offset !== undefined && { line: offset }) }],
  }),
  run: async ({ path, offset = 1, limit = Infinity }, tree) => {
    const { bytes } = await readFileAt(tree, path)
    tree.known?.note(path, bytes)
    const picture = PICTURES.find(([, from, magic]) => bytes.toString('latin1', from, from + magic.length) === magic)
    if (picture) return done(`${path} is a ${picture[0]} picture of ${bytes.length} bytes`, [{ type: 'image', path }])
    const text = readableText(bytes)
    if (text === undefined && looksLikeText(bytes))
      return done(
        `${path} is not UTF-8: ${bytes.length} bytes, not shown; read it with a command, such as iconv -f LATIN1`,
      )
    if (text === undefined) return done(`${path} is binary: ${bytes.length} bytes, not shown`)
    const shown = (part: string) =>
      done(cut(tree.lineHashes ? withHashes(part, offset) : part, MOST_RESULT), textContent(part))
    if (offset === 1 && limit === Infinity) return shown(text)
    const lines = text.split('\n')
    if (lines.at(-1) === '') lines.pop()
    if (offset > lines.length) return failed(`${path} has ${lines.length} lines, so none from line ${offset}`)
    return shown(lines.slice(offset - 1, offset - 1 + limit).join('\n'))
  },
})

/** Lists a folder: folders end with `/`, links with `@`; does not open links or installed packages. */
export const listFolder = tool('List', {
  category: 'search',
  describe: ({ path = '.' }) => ({ target: path, path }),
  run: async ({ path = '.', depth = 1 }, tree) => {
    const rows: string[] = []
    const list = async (folder: string, shown: string, left: number): Promise<void> => {
      const entries = await inTreeFolder(tree, folder, async (at, shows) =>
        (await readdir(at, { withFileTypes: true })).filter(({ name }) => shows(name)),
      )
      for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        if (entry.name.startsWith(TEMPORARY)) continue
        if (rows.length >= MOST_ROWS) return
        tree.signal.throwIfAborted()
        rows.push(shown + plain(entry.name) + mark(entry))
        const below = `${shown}${plain(entry.name)}/`
        if (left === 1 || !entry.isDirectory() || UNOPENED.has(entry.name)) continue
        await list(join(folder, entry.name), below, left - 1).catch(() => rows.push(`[${below} cannot be opened]`))
      }
    }
    await list(path, '', depth)
    if (rows.length >= MOST_ROWS) rows.push(`[only the first ${MOST_ROWS} are shown]`)
    const text = rows.length === 0 ? `${path} is empty` : rows.join('\n')
    return done(text, textContent(text))
  },
})

const mark = (entry: Dirent): string => (entry.isDirectory() ? '/' : entry.isSymbolicLink() ? '@' : '')

/** A name on one line, quoted if it contains control characters. */
const plain = (name: string): string => (/[\x00-\x1f\x7f]/.test(name) ? JSON.stringify(name) : name)
