import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { TEMPORARY } from '../../../sdk/node/files/files.js'
import { MOST_READ } from '../outputs/limited-result.js'
import { pictureOf, shownPicture } from '../outputs/pictures.js'
import { textContent } from './content.js'
import { looksLikeText, readableText } from './file-form.js'
import { withHashes } from './line-hashes.js'
import { done, failed, tool } from './tool.js'
import { inTreeFolder, readFileAt } from './tree.js'

const MOST_ROWS = 2000
/** Room for the line that says where to go on. */
const NOTE_BYTES = 200
const UNOPENED = new Set(['.git', 'node_modules'])

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
    const picture = pictureOf(bytes)
    if (picture) {
      const { name, size } = picture
      const pixels = size ? `, ${size[0]} × ${size[1]} pixels` : ''
      const words = `${path} is a ${name} picture of ${bytes.length} bytes${pixels}`
      const content = [{ type: 'image' as const, path }]
      const sent = await shownPicture(tree.picture, path, bytes)
      if (typeof sent === 'string') return done(`${words}; you do not see it: ${sent}`, content)
      return { ...done(words, content), pictures: [sent] }
    }
    const text = readableText(bytes)
    if (text === undefined && looksLikeText(bytes))
      return done(
        `${path} is not UTF-8: ${bytes.length} bytes, not shown; read it with a command, such as iconv -f LATIN1`,
      )
    if (text === undefined) return done(`${path} is binary: ${bytes.length} bytes, not shown`)
    const shown = (part: string, of: number) =>
      done(readable(tree.lineHashes ? withHashes(part, offset) : part, tree.most, { offset, of }), textContent(part))
    const lines = text.split('\n')
    if (lines.at(-1) === '') lines.pop()
    if (offset === 1 && limit === Infinity) return shown(text, lines.length)
    if (offset > lines.length) return failed(`${path} has ${lines.length} lines, so none from line ${offset}`)
    return shown(lines.slice(offset - 1, offset - 1 + limit).join('\n'), lines.length)
  },
})

/** The lines that fit into what a model reads, and where to go on; of a first line that is longer its beginning. */
const readable = (
  text: string,
  most = MOST_READ,
  { offset, of }: { readonly offset: number; readonly of: number },
): string => {
  const room = most - NOTE_BYTES
  if (Buffer.byteLength(text) <= most) return text
  const rows = text.split('\n')
  let [bytes, fits] = [0, 0]
  while (fits < rows.length && bytes + Buffer.byteLength(rows[fits]!) < room)
    bytes += Buffer.byteLength(rows[fits++]!) + 1
  const next = offset + fits
  if (fits > 0)
    return `${rows.slice(0, fits).join('\n')}\n[lines ${offset} to ${next - 1} of ${of}; go on with offset ${next}]`
  const begins = Buffer.from(rows[0]!)
    .subarray(0, room)
    .toString()
    .replace(/\ufffd+$/, '')
  const size = Buffer.byteLength(rows[0]!)
  return `${begins}\n[the beginning of line ${offset} of ${of}, of ${size} bytes: read parts of it with a command]`
}

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
