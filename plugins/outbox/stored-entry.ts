import type { BlockReason } from './contract.js'
import type { PublishedBytes } from './pieces.js'

/** A published file. */
export interface StoredFile extends PublishedBytes {
  /** From the outbox. */
  readonly path: string
  /** Its place on the disk, size and times when its bytes were last those that were published. */
  identity: string
  /** Why it was last refused, as the record says. */
  blocked?: BlockReason
}

/** What was published under one name. */
export interface StoredEntry {
  readonly name: string
  readonly isFolder: boolean
  /** The workspace path of the copied file or folder. */
  readonly source?: string
  readonly publishedBy: string
  readonly publishedAt: number
  readonly expiresAt?: number
  /** The record says that its time is over. */
  expired?: true
  readonly files: StoredFile[]
}

/** What is stored of one name: the entry, and a change of its files that is under way. */
export interface StoredName {
  current?: StoredEntry
  /** Takes the place of the entry: its files are staged, or already in the outbox. */
  next?: { readonly entry: StoredEntry; readonly staged: string }
  /** The paths of published files that go. */
  removing?: readonly string[]
}

/** The bytes of an entry. */
export const entryBytes = ({ files }: Pick<StoredEntry, 'files'>): number =>
  files.reduce((sum, { size }) => sum + size, 0)
