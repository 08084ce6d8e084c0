import { askDaemon } from '../api.js'
import { sha256 } from '../hash.js'

/** What kind of view a file gets. */
export type FileKind = 'picture' | 'sound' | 'film' | 'document' | 'archive' | 'text'

const KINDS: readonly (readonly [endings: RegExp, kind: FileKind])[] = [
  [/\.(?:png|jpe?g|gif|webp|avif|svg|bmp|ico)$/i, 'picture'],
  [/\.(?:mp3|ogg|oga|wav|flac|m4a|opus)$/i, 'sound'],
  [/\.(?:mp4|webm|mov|ogv|m4v)$/i, 'film'],
  [/\.(?:docx|xlsx|pptx|odt|ods|odp|rtf|pdf|epub)$/i, 'document'],
  [/\.(?:zip|tar|tgz|tbz2?|txz|gz|bz2|xz|zst|7z|rar)$/i, 'archive'],
]

/** How a file of this name is shown. */
export const fileKindOf = (path: string): FileKind => KINDS.find(([endings]) => endings.test(path))?.[1] ?? 'text'

/** Whether a text can be read as a document too. */
export const readsAsDocument = (path: string): boolean => /\.(?:html?|ipynb|csv|tsv|srt|vtt)$/i.test(path)

/** A file that is opened: its text with the hash of its bytes, or why it is not shown as text. */
export type OpenedFile =
  | { readonly kind: 'text'; readonly text: string; readonly hash: string }
  | { readonly kind: 'binary' | 'large'; readonly size: number }
  | { readonly kind: 'there' }
  | { readonly kind: 'missing' }

/** Larger files are shown in parts and are not written here. */
const MOST_TEXT = 4 * 1024 * 1024
const BINARY_WITHIN = 8 * 1024

/** Whether there is a file at a path. */
export const askWhetherThere = async (path: string): Promise<OpenedFile> => {
  const { content } = await askDaemon('GET /workspace/file', { path, limit: 1 })
  return content === undefined ? { kind: 'missing' } : { kind: 'there' }
}

/** The text of a file as it is on disk. */
export const openTextFile = async (path: string): Promise<OpenedFile> => {
  const { content, size = 0, lossy } = await askDaemon('GET /workspace/file', { path, limit: BINARY_WITHIN })
  if (content === undefined) return { kind: 'missing' }
  if (content.includes('\0')) return { kind: 'binary', size }
  if (size > MOST_TEXT) return { kind: 'large', size }
  if (lossy && size <= BINARY_WITHIN) return { kind: 'binary', size }
  // The bytes, because saving compares their hash; what decodes them must not drop any.
  const { data } = await askDaemon('GET /workspace/raw', { path })
  const bytes = new Uint8Array(data as ArrayLike<number>)
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { kind: 'text', text, hash: await sha256(bytes) }
  } catch {
    return { kind: 'binary', size }
  }
}
