import type { tags } from 'typia'
import type { Count, Millis } from '../../../sdk/types.js'
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
   * tsv, srt and vtt, by content and then by name.
   *
   * It takes at most 120 s; a second call for the same content joins the first, and unchanged content is answered from
   * the store. A document that cannot be read is an answer with state `broken` and the reason.
   *
   * - 400: not a workspace path
   * - 404: no such file
   * - 413: over 200 MiB
   * - 422: a folder, pipe or device
   * - 429: five documents are waiting
   */
  'POST /workspace/derive'(input: { path: WsPath & tags.MaxLength<4096> }): DerivedText | NotDerived
}
