import { extname } from 'node:path'
import { DOCUMENT_ENDINGS } from '../../../sdk/node/extension/document-endings.js'

/** What derives the text of a format; `doc`, `xls` and `ppt` are older binary formats, which LibreOffice converts. */
export type DocumentFormat = (typeof DOCUMENT_ENDINGS)[keyof typeof DOCUMENT_ENDINGS]

const NAMED: { readonly [ending: string]: DocumentFormat } = DOCUMENT_ENDINGS
/** The ending of a name without its dot, in lower case. */
export const endingOf = (name: string): string => extname(name).slice(1).toLowerCase()

const MAGIC: readonly (readonly [string, DocumentFormat])[] = [
  ['%PDF-', 'pdf'],
  ['{\\rtf', 'rtf'],
]
/** What a ZIP with one of these names inside is; office programs write them in its list at the end. */
const PARTS: readonly (readonly [string, DocumentFormat])[] = [
  ['word/document.xml', 'docx'],
  ['xl/workbook.xml', 'xlsx'],
  ['ppt/presentation.xml', 'pptx'],
]
/** What the first entry of a ZIP says of it, which is not compressed. */
const MIMETYPES: readonly (readonly [string, DocumentFormat])[] = [
  ['application/vnd.oasis.opendocument.text', 'odt'],
  ['application/vnd.oasis.opendocument.spreadsheet', 'ods'],
  ['application/vnd.oasis.opendocument.presentation', 'odp'],
  ['application/epub+zip', 'epub'],
]
const ENCRYPTED_OFFICE = Buffer.from('d0cf11e0a1b11ae1', 'hex')
const OLDER: ReadonlySet<string> = new Set(['doc', 'xls', 'ppt'])
const PICTURES = ['\x89PNG', '\xff\xd8\xff', 'GIF8', 'BM', 'II*\0', 'MM\0*', '\0\0\x01\0']
const PICTURE_NAME = /\.(?:png|jpe?g|gif|webp|bmp|ico|tiff?|svg|avif|heic)$/i

/** The most bytes of a derived text. */
export const MOST_MARKDOWN = 1024 * 1024
/** How many bytes of a document's beginning and end say what it is. */
export const HEAD_BYTES = 256
export const TAIL_BYTES = 64 * 1024

/** Whether bytes are the container of old or of encrypted office documents. */
export const isCompound = (head: Buffer): boolean => head.subarray(0, 8).equals(ENCRYPTED_OFFICE)

/** Whether a format is one that LibreOffice converts. */
export const isOlder = (format: DocumentFormat | undefined): format is 'doc' | 'xls' | 'ppt' =>
  format !== undefined && OLDER.has(format)

/** Whether bytes are a picture; without bytes, whether the name is one of a picture. */
export const isPicture = (path: string, head?: Buffer): boolean => {
  if (!head) return PICTURE_NAME.test(path)
  const start = head.toString('latin1', 0, 16)
  if (PICTURES.some(magic => start.startsWith(magic)) || /^RIFF....WEBP|^....ftyp(?:avif|hei[cx])/s.test(start))
    return true
  return /\.svg$/i.test(path)
}

/** The format of a document, by its first and last bytes and then by its name; undefined: none that is known. */
export const documentFormat = (path: string, head: Buffer, tail?: Buffer): DocumentFormat | undefined => {
  const start = head.toString('latin1', 0, 128)
  const magic = MAGIC.find(([bytes]) => start.startsWith(bytes))?.[1]
  if (magic) return magic
  const named = NAMED[endingOf(path)]
  if (!start.startsWith('PK')) return isOlder(named) && !isCompound(head) ? undefined : named
  const type = /^mimetype(.*)/s.exec(start.slice(30))?.[1] ?? ''
  const end = tail?.toString('latin1') ?? ''
  const inside = MIMETYPES.find(([mimetype]) => type.startsWith(mimetype)) ?? PARTS.find(([part]) => end.includes(part))
  return inside?.[1] ?? (isOlder(named) ? undefined : named)
}

const TEXTS: ReadonlySet<DocumentFormat> = new Set(['html', 'ipynb', 'csv', 'tsv', 'subtitles', 'rtf'])

/** The endings of names in formats that are not text and that the sandbox reads without another program. */
export const ownBinaryEndings: readonly string[] = Object.entries(NAMED).flatMap(([ending, format]) =>
  TEXTS.has(format) || OLDER.has(format) ? [] : [ending],
)

/** The format that a name stands for. */
export const formatNamed = (path: string): DocumentFormat | undefined => NAMED[endingOf(path)]
