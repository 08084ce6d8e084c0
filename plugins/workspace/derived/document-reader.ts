import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { Host } from '../../../sdk/index.js'
import { hasZeros } from '../../../sdk/node/files/side-files.js'
import type { DocumentType } from '../../extensions/contract.js'
import type { DiffKind } from './contract.js'
import {
  documentFormat,
  endingOf,
  formatNamed,
  HEAD_BYTES,
  TAIL_BYTES,
  type DocumentFormat,
} from './document-format.js'

/** What derives the text of a document: the sandbox itself by its format, or an extension. */
export type DocumentReader =
  | { readonly kind: 'format'; readonly format: DocumentFormat }
  | { readonly kind: 'extension'; readonly type: DocumentType }

/** A new version derives everything again. */
const VERSION = 2
const KEY_DIGITS = 24
/** A NUL in so many bytes makes a file binary, as for git. */
const LOOKED_AT = 8_000

/** What a format shows as; text formats are compared as text. */
export const KINDS: { readonly [format in DocumentFormat]?: DiffKind } = {
  docx: 'document',
  odt: 'document',
  rtf: 'document',
  epub: 'document',
  doc: 'document',
  xlsx: 'spreadsheet',
  ods: 'spreadsheet',
  xls: 'spreadsheet',
  pptx: 'presentation',
  odp: 'presentation',
  ppt: 'presentation',
  ipynb: 'notebook',
  pdf: 'pdf',
}

/** What a document shows as among changes. */
export const diffKindOf = (reader: DocumentReader | undefined): DiffKind | undefined =>
  reader && (reader.kind === 'format' ? KINDS[reader.format] : 'document')

/** The name that the text of a content is kept under; another version of an extension derives it again. */
export const textKey = (hash: string, reader: DocumentReader): string => {
  if (reader.kind === 'format') return `${hash}-${reader.format}-${VERSION}`
  const { extension, document, revision } = reader.type
  const by = createHash('sha256')
    .update(JSON.stringify([extension, document, revision]))
    .digest('hex')
  return `${hash}-x-${by.slice(0, KEY_DIGITS)}`
}

/** The name under which the content of a git object is known. */
export const blobKey = (blob: string, reader: DocumentReader): string => `git-${textKey(blob, reader)}`

/** Some bytes of a file. */
const partOf = async (handle: FileHandle, length: number, from: number): Promise<Buffer> => {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, from)
  return buffer.subarray(0, bytesRead)
}

/** The first and the last bytes of a file, which say what it is. */
export const endsOf = async (handle: FileHandle, size: number): Promise<{ head: Buffer; tail: Buffer }> => ({
  head: await partOf(handle, HEAD_BYTES, 0),
  tail: await partOf(handle, TAIL_BYTES, Math.max(0, size - TAIL_BYTES)),
})

/** Finds what reads a document. */
export class DocumentReaders {
  readonly #host: Pick<Host, 'call' | 'serves'>

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** The types of files that running extensions read. */
  async types(): Promise<readonly DocumentType[]> {
    if (!(await this.#host.serves('extensions.documentTypes'))) return []
    return (await this.#host.call('extensions.documentTypes')).types
  }

  /** The reader of an open file: of what the sandbox reads itself by its content, else of an extension by its name. */
  async of(name: string, handle: FileHandle, size: number): Promise<DocumentReader | undefined> {
    const { head, tail } = await endsOf(handle, size)
    const format = documentFormat(name, head, tail)
    if (format) return { kind: 'format', format }
    const type = (await this.types()).find(({ ending }) => ending === endingOf(name))
    // A file that is text is its own text.
    return type && hasZeros(await partOf(handle, LOOKED_AT, 0)) ? { kind: 'extension', type } : undefined
  }

  /** What whole bytes are: one of the sandbox's own formats, or binary. */
  static looksOf(name: string, bytes: Buffer): { format: DocumentFormat | undefined; binary: boolean } {
    const [head, tail] = [bytes.subarray(0, HEAD_BYTES), bytes.subarray(-TAIL_BYTES)]
    return { format: documentFormat(name, head, tail), binary: hasZeros(bytes) }
  }

  /** The reader that a name stands for, of those types that extensions read. */
  static named(name: string, types: readonly DocumentType[]): DocumentReader | undefined {
    const format = formatNamed(name)
    if (format) return { kind: 'format', format }
    const type = types.find(({ ending }) => ending === endingOf(name))
    return type && { kind: 'extension', type }
  }
}
