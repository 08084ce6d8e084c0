import { refuse } from '../../../sdk/index.js'
import { textOf } from './content.js'

const BOM = '\uFEFF'

type Encoding = 'utf8' | 'utf16le' | 'utf16be'

/** How a text file is written, which a change of its text keeps. */
export interface FileForm {
  /** It begins with a byte order mark. */
  readonly bom: boolean
  /** The end of its lines: that of most of them. */
  readonly eol: '\n' | '\r\n'
  readonly encoding: Encoding
}

/** The form of a new file: the text as it is given. */
const AS_GIVEN: FileForm = { bom: false, eol: '\n', encoding: 'utf8' }

const counted = (text: string, part: string): number => text.split(part).length - 1

/** The text of UTF-16 with its byte order mark; undefined: the bytes are none. */
const wideText = (bytes: Uint8Array): { readonly text: string; readonly encoding: Encoding } | undefined => {
  const [first, second] = bytes
  const little = first === 0xff && second === 0xfe
  if ((!little && !(first === 0xfe && second === 0xff)) || bytes.length % 2 !== 0) return undefined
  const pairs = Buffer.from(bytes)
  const text = (little ? pairs : pairs.swap16()).toString('utf16le')
  return text.isWellFormed() && !text.includes('\0') ? { text, encoding: little ? 'utf16le' : 'utf16be' } : undefined
}

/** The text of a file in an encoding that a change keeps, as it is read; undefined: it is none. */
export const readableText = (bytes: Uint8Array): string | undefined => textOf(bytes) ?? wideText(bytes)?.text

/** Whether bytes without a known encoding look like a text: no character but those of texts. */
export const looksLikeText = (bytes: Uint8Array): boolean =>
  bytes.every(byte => byte >= 32 || byte === 9 || byte === 10 || byte === 12 || byte === 13 || byte === 27)

const unreadable = (bytes: Uint8Array, path: string): never => {
  if (!looksLikeText(bytes)) return refuse('unprocessable', `${path} is binary and cannot be edited`)
  const at = Buffer.from(new TextDecoder().decode(bytes)).indexOf('\ufffd')
  const line = bytes.subarray(0, Math.max(at, 0)).filter(byte => byte === 10).length + 1
  return refuse(
    'unprocessable',
    `${path} is not UTF-8 (line ${line}), so its other characters would be lost: it is in an encoding such as Latin-1 `
      + 'or Windows-1252; change it with a command that keeps that, or convert it with iconv first',
  )
}

/** The text of a file without its byte order mark, and its form. Refuses bytes in an unknown encoding. */
export const fileFormOf = (bytes: Uint8Array, path: string): { readonly text: string; readonly form: FileForm } => {
  const plain = textOf(bytes)
  const { text: all, encoding } =
    plain === undefined ? (wideText(bytes) ?? unreadable(bytes, path)) : { text: plain, encoding: 'utf8' as const }
  const bom = all.startsWith(BOM)
  const text = bom ? all.slice(BOM.length) : all
  const pairs = counted(text, '\r\n')
  return { text, form: { bom, eol: pairs * 2 > counted(text, '\n') ? '\r\n' : '\n', encoding } }
}

const encoded = (text: string, encoding: Encoding): Buffer => {
  if (encoding === 'utf8') return Buffer.from(text)
  const wide = Buffer.from(text, 'utf16le')
  return encoding === 'utf16le' ? wide : wide.swap16()
}

/** The bytes of a text in a form: its lines end as they are. */
export const bytesIn = (text: string, { bom, encoding }: FileForm): Buffer =>
  encoded(bom && !text.startsWith(BOM) ? BOM + text : text, encoding)

/** A text whose lines end as those of a file do. */
export const withEnds = (text: string, { eol }: Pick<FileForm, 'eol'>): string =>
  eol === '\n' ? text : text.replace(/\r?\n/g, '\r\n')

/**
 * The bytes of a whole new text of a file: a model writes plain line ends, and the file keeps its own. Refuses a text
 * whose encoding would be lost; what is binary is replaced.
 */
export const rewritten = (content: string, before: Uint8Array | undefined, path = 'the file'): Buffer => {
  const keeps = before && (readableText(before) !== undefined || looksLikeText(before))
  const { form } = keeps ? fileFormOf(before, path) : { form: AS_GIVEN }
  return bytesIn(content.includes('\r') ? content : withEnds(content, form), form)
}

/** The bytes of a file with a text at its end; refuses a file that is no text. */
export const appended = (content: string, before: Uint8Array | undefined, path: string): Buffer => {
  if (!before) return Buffer.from(content)
  const { form } = fileFormOf(before, path)
  const text = content.includes('\r') ? content : withEnds(content, form)
  return Buffer.concat([before, encoded(text, form.encoding)])
}
