import { readdir } from 'node:fs/promises'
import { posix } from 'node:path'
import { Refusal } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { shortText } from '../outputs/head-and-tail.js'
import { readableText } from '../tools/file-form.js'
import { inTreeFolder, readFileAt, type Rooted } from '../tools/tree.js'

/** A text that came with the code, as a model may read it; `problem` says what of it is not there. */
export interface CodeText {
  readonly path: string
  readonly text: string
  readonly problem?: string
}

/** Characters that reorder or hide text: a person who reads the file does not see what a model reads. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}/gu
/** Scripts and pictures are written with these. */
const JOINERS = /[\u200c\u200d\ufe0e\ufe0f]/g
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g

/** The names of the files in a folder, links included, as far as the turn sees them; none where there is no folder. */
export const filesIn = async (tree: Rooted, folder: string): Promise<ReadonlySet<string>> => {
  try {
    return await inTreeFolder(
      tree,
      folder,
      async (at, shows) =>
        new Set(
          (await readdir(at, { withFileTypes: true }))
            .filter(entry => !entry.isDirectory() && shows(entry.name))
            .map(({ name }) => name),
        ),
    )
  } catch (error) {
    if (error instanceof Refusal || codeOf(error) !== undefined) return new Set()
    throw error
  }
}

/** A text file of the tree of at most so many bytes; without a text, why it is not read. */
export const readCodeText = async (tree: Rooted, path: string, most: number): Promise<CodeText> => {
  const none = (problem: string): CodeText => ({ path, text: '', problem: `${path} ${problem}: it is not read` })
  let bytes: Buffer
  try {
    bytes = (await readFileAt(tree, path)).bytes
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'not-found')
      return none('leads out of what this turn reaches, or nowhere')
    if (error instanceof Refusal) return none(`cannot be read (${error.message})`)
    if (codeOf(error) !== undefined) return none(`cannot be read (${codeOf(error)})`)
    throw error
  }
  const whole = readableText(bytes)
  if (whole === undefined) return none('is no text')
  const plain = whole.replace(/^\ufeff/, '')
  const unseen = plain.replace(JOINERS, '').match(UNSEEN)?.length ?? 0
  const clean = plain.replace(UNSEEN, character => character.match(JOINERS)?.[0] ?? '').replace(CONTROL, '')
  const text = shortText(clean.replaceAll('\r\n', '\n').trim(), most)
  const problems = [
    ...(Buffer.byteLength(clean) > most
      ? [`has ${bytes.length} bytes, and at most ${most} are given: its beginning and its end`]
      : []),
    ...(unseen > 0 ? [`holds ${unseen} characters that hide or reorder text: they are left out`] : []),
  ]
  return { path, text, ...(problems.length > 0 && { problem: `${path} ${problems.join('; it ')}` }) }
}

/**
 * The fields at the head of a Markdown file, each of one line, and the text after them. They are not YAML: tools write
 * `globs: *.ts` and `argument-hint: [name] [text]`.
 */
export const withoutHead = (text: string): { readonly head: ReadonlyMap<string, string>; readonly body: string } => {
  const found = /^---\n([\s\S]*?)\n---(?:\n|$)/.exec(text)
  if (!found) return { head: new Map(), body: text }
  const rows = found[1]!.split('\n').flatMap(row => {
    const field = /^([\w-]{1,40}):\s*(.*)$/.exec(row)
    return field ? [[field[1]!, field[2]!.trim().replace(/^(["'])(.*)\1$/, '$2')] as const] : []
  })
  return { head: new Map(rows), body: text.slice(found[0].length).trim() }
}

/** The path of a file in a folder of the tree. */
export const codePath = (folder: string, name: string): string => (folder === '.' ? name : posix.join(folder, name))
