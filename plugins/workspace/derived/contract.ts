import type { tags } from 'typia'
import type { Count, Millis, SidePair, Size } from '../../../sdk/types.js'
import type { WsPath } from '../tree/contract.js'

/** The state of the text form of a document. */
export type DerivedState = 'deriving' | 'idle' | 'broken' | 'undeliverable'

/** A document as markdown. */
export interface DerivedText {
  state: DerivedState
  path: string
  /** Markdown, at most 1 MiB. */
  content: string
  /** The program that derived it. */
  deriver: string
  derivedAt: Millis
  title?: string
  /** Parts of the document that the text does not show. */
  notes: string[]
  /** An estimate. */
  tokens: Count
  /** It is longer than 1 MiB. */
  truncated: boolean
  /** The file changed since. */
  stale: boolean
}
/** A file without a text form, so far or permanently. */
export interface NotDerived {
  state: DerivedState
  path: string
  /** Its format is known. */
  derivable: boolean
  reason?: string
}

/** What a file is, for people who look at its changes. */
export type DiffKind = 'document' | 'spreadsheet' | 'presentation' | 'notebook' | 'pdf' | 'image' | 'other'

/** A file as text, or why there is none. */
export interface RenderedText {
  kind: DiffKind
  /** What derived it; absent: a picture, or no document. */
  deriver?: string
  markdown?: string
  title?: string
  notes: string[]
  /** Pages, sheets, slides or cells. */
  parts?: Count
  truncated: boolean
  /** Why it could not be read. */
  failed?: string
}
/** What a file's name says of it, and whether its text is there already. */
export interface NamedDocument {
  kind: DiffKind
  /** The program that is missing to read it. */
  needs?: string
  /** It is a document only if it is not text. */
  binary?: true
  cached: boolean
}
/** A format that documents can be read in. */
export interface Renderer {
  format: string
  available: boolean
  /** The program that is missing. */
  needs?: string
}

/** The text form of documents. */
export interface DerivedCalls {
  /**
   * Read the text form of a document, if it was derived; this call derives nothing.
   *
   * - 400: not a workspace path
   * - 404: no such file
   * - 422: a folder, pipe or device
   */
  'GET /workspace/derived'(input: { path: WsPath }): DerivedText | NotDerived

  /**
   * Derive the text form of a document as markdown: docx, xlsx, pptx, odt, ods, odp, rtf, pdf, epub, html, ipynb, csv,
   * tsv, srt and vtt, by content and then by name; doc, xls and ppt where LibreOffice is installed; and files that are
   * not text whose name has an ending that an extension reads, of at most 20 MiB.
   *
   * It takes at most 120 s; a second call for the same content joins the first, and unchanged content is answered from
   * the store. A document that cannot be read is an answer with state `broken` and the reason, and with state
   * `undeliverable` if its extension does not run now.
   *
   * - 400: not a workspace path
   * - 404: no such file
   * - 413: over 200 MiB
   * - 422: a folder, pipe or device
   * - 429: five documents are waiting
   * - 501: LibreOffice is missing; the message says how to install it
   */
  'POST /workspace/derive'(input: { path: WsPath & tags.MaxLength<4096> }): DerivedText | NotDerived

  /**
   * Gives the text form of a file with this name, derived at most once for each content; 60 s, and four wait.
   *
   * `hash` is the SHA-256 of its bytes; `blob` the git object that they are the content of.
   */
  'workspace.rendered'(input: { name: string; file: string; hash: string; blob?: string }): RenderedText

  /** Says what files are by their names, and whether the texts of their git objects are kept. */
  'workspace.documents'(input: { files: { name: string; blobs: string[] }[] }): { files: NamedDocument[] }

  /** The formats that can be read here. */
  'workspace.renderers'(): { renderers: Renderer[] }

  /** Writes two files of the workspace, or of the tree of a conversation, into a folder, each up to `most` bytes. */
  'workspace.sides'(input: { before: string; after: string; agent?: string; folder: string; most: Size }): SidePair
}
