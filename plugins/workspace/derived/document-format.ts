import { extname } from 'node:path'

/** The program that derives the text of a format. */
export type DocumentFormat =
  | 'docx'
  | 'xlsx'
  | 'pptx'
  | 'odt'
  | 'ods'
  | 'odp'
  | 'rtf'
  | 'pdf'
  | 'epub'
  | 'html'
  | 'ipynb'
  | 'csv'
  | 'tsv'
  | 'subtitles'

const NAMED: { readonly [extension: string]: DocumentFormat } = {
  '.docx': 'docx',
  '.docm': 'docx',
  '.xlsx': 'xlsx',
  '.xlsm': 'xlsx',
  '.pptx': 'pptx',
  '.pptm': 'pptx',
  '.odt': 'odt',
  '.ods': 'ods',
  '.odp': 'odp',
  '.rtf': 'rtf',
  '.pdf': 'pdf',
  '.epub': 'epub',
  '.html': 'html',
  '.htm': 'html',
  '.ipynb': 'ipynb',
  '.csv': 'csv',
  '.tsv': 'tsv',
  '.srt': 'subtitles',
  '.vtt': 'subtitles',
}
const MAGIC: readonly (readonly [string, DocumentFormat])[] = [
  ['%PDF-', 'pdf'],
  ['{\\rtf', 'rtf'],
]
const ENCRYPTED_OFFICE = Buffer.from('d0cf11e0a1b11ae1', 'hex')

/** Whether bytes are the container of old or of encrypted office documents. */
export const isCompound = (head: Buffer): boolean => head.subarray(0, 8).equals(ENCRYPTED_OFFICE)

/** The format of a document, by its first bytes and then by its name; undefined: unknown. */
export const documentFormat = (path: string, head: Buffer): DocumentFormat | undefined => {
  const start = head.toString('latin1', 0, 8)
  return MAGIC.find(([magic]) => start.startsWith(magic))?.[1] ?? NAMED[extname(path).toLowerCase()]
}
