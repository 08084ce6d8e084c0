import { refuse } from '../../../sdk/index.js'
import { textOf } from './content.js'

const BOM = '\uFEFF'

/** How a text file is written, which a change of its text keeps. */
export interface FileForm {
  /** It begins with a byte order mark. */
  readonly bom: boolean
  /** The end of its lines: that of most of them. */
  readonly eol: '\n' | '\r\n'
}

/** The form of a new file: the text as it is given. */
const AS_GIVEN: FileForm = { bom: false, eol: '\n' }

const counted = (text: string, part: string): number => text.split(part).length - 1

/** The text of a file without its byte order mark, and its form; refuses a file that is no UTF-8 text. */
export const fileFormOf = (bytes: Uint8Array, path: string): { readonly text: string; readonly form: FileForm } => {
  const all = textOf(bytes) ?? refuse('unprocessable', `${path} is binary and cannot be edited`)
  const bom = all.startsWith(BOM)
  const text = bom ? all.slice(BOM.length) : all
  const pairs = counted(text, '\r\n')
  return { text, form: { bom, eol: pairs * 2 > counted(text, '\n') ? '\r\n' : '\n' } }
}

/** The bytes of a text in a form: its lines end as they are. */
export const bytesIn = (text: string, { bom }: FileForm): Buffer =>
  Buffer.from(bom && !text.startsWith(BOM) ? BOM + text : text)

/** A text whose lines end as those of a file do. */
export const withEnds = (text: string, { eol }: Pick<FileForm, 'eol'>): string =>
  eol === '\n' ? text : text.replace(/\r?\n/g, '\r\n')

/** The bytes of a whole new text of a file: a model writes plain line ends, and the file keeps its own. */
export const rewritten = (content: string, before: Uint8Array | undefined): Buffer => {
  const found = before && textOf(before) !== undefined ? fileFormOf(before, '') : undefined
  const { form = AS_GIVEN } = found ?? {}
  return bytesIn(content.includes('\r') ? content : withEnds(content, form), form)
}

/** The bytes of a file with a text at its end; refuses a file that is no text. */
export const appended = (content: string, before: Uint8Array | undefined, path: string): Buffer => {
  if (!before) return Buffer.from(content)
  const { form } = fileFormOf(before, path)
  return Buffer.concat([before, Buffer.from(content.includes('\r') ? content : withEnds(content, form))])
}
