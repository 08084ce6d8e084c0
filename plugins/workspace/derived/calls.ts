import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
import type { FileHandle } from 'node:fs/promises'
import { refuse, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { openExisting, openFile, shownPath } from '../../../sdk/node/files/open-path.js'
import { hashOfFile } from '../upload/staging.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { DerivedCalls, DerivedText, NotDerived } from './contract.js'
import { DerivedStore, type KeptDerivation } from './derived-store.js'
import { Deriver } from './deriver.js'
import { DocumentReaders, textKey, type DocumentReader } from './document-reader.js'
import type { DerivedParts } from './document-texts.js'
import { renderCalls } from './rendering.js'

const MOST_FILE = 200 * 1024 * 1024
const CHARACTERS_A_TOKEN = 4
const MOST_REMEMBERED = 1_000

/** An open document, and what reads it. */
interface OpenDocument {
  readonly path: string
  readonly reader: DocumentReader | undefined
  readonly size: number
  readonly handle: FileHandle
}

const answered = (
  path: string,
  { deriver, derivedAt, derivation }: KeptDerivation,
  stale: boolean,
): DerivedText | NotDerived =>
  'failed' in derivation
    ? { state: derivation.passing ? 'undeliverable' : 'broken', path, derivable: true, reason: derivation.failed }
    : {
        state: 'idle',
        path,
        content: derivation.markdown,
        deriver,
        derivedAt,
        ...(derivation.title !== undefined && { title: derivation.title }),
        notes: [...derivation.notes],
        tokens: Math.ceil(derivation.markdown.length / CHARACTERS_A_TOKEN),
        truncated: derivation.truncated,
        stale,
      }

/** Opens what keeps and derives the texts of documents. */
export const openDerived = (host: Host): DerivedParts => {
  const store = new DerivedStore(join(host.place.folder, 'derived'))
  return { store, deriver: new Deriver(host, store), readers: new DocumentReaders(host) }
}

/** Derives the text form of documents. */
export const derivedCalls = (host: Host, parts: DerivedParts): Handlers<DerivedCalls> => {
  const { store, deriver, readers } = parts
  /** The last derived content of a path, which is returned until it is derived again. */
  const last = new Map<string, string>()
  const remember = (path: string, key: string) => {
    last.delete(path)
    last.set(path, key)
    if (last.size > MOST_REMEMBERED) last.delete(last.keys().next().value!)
  }
  const unknown = (path: string): NotDerived => ({
    state: 'idle',
    path,
    derivable: false,
    reason: 'its format is none that a text can be derived of',
  })
  const withDocument = async <T>(
    context: Context,
    path: string,
    work: (document: OpenDocument) => Promise<T>,
  ): Promise<T> => {
    await using found = await openExisting(await sharedTree(host, context), path)
    await using handle = await openFile(found, path)
    const { size } = found.stats
    return await work({ path: found.path, reader: await readers.of(found.path, handle, size), size, handle })
  }

  return {
    ...renderCalls(host, parts),
    'GET /workspace/derived': async ({ path }, context) =>
      withDocument(context, path, async document => {
        const { reader, size, handle } = document
        if (!reader) return unknown(path)
        if (size > MOST_FILE) return { state: 'idle', path, derivable: false, reason: 'it is larger than 200 MiB' }
        const key = textKey(await hashOfFile(handle), reader)
        const kept = await store.get(key)
        if (kept) {
          remember(document.path, key)
          return answered(path, kept, false)
        }
        const before = last.get(document.path)
        const stale = before === undefined ? undefined : await store.get(before)
        if (stale && !('failed' in stale.derivation)) return answered(path, stale, true)
        return { state: deriver.isRunning(key) ? 'deriving' : 'idle', path, derivable: true }
      }),

    'POST /workspace/derive': async ({ path }, context) =>
      withDocument(context, path, async document => {
        const { reader, size, handle } = document
        if (size > MOST_FILE)
          refuse('too-large', `${shownPath(path)} has ${size} bytes, and documents have at most ${MOST_FILE}`)
        if (!reader) return unknown(path)
        const key = textKey(await hashOfFile(handle), reader)
        const known = await store.get(key)
        if (known && !('failed' in known.derivation)) {
          remember(document.path, key)
          return answered(path, known, false)
        }
        const bytes = async () => {
          const read = Buffer.alloc(size)
          await handle.read(read, 0, size, 0)
          const now = textKey(createHash('sha256').update(read).digest('hex'), reader)
          return now === key ? read : refuse('conflict', `${shownPath(path)} changes while it is read: try again`)
        }
        const kept = await deriver.derive(key, reader, { name: basename(document.path), bytes })
        remember(document.path, key)
        await host.call('kernel.events.publish', { domain: 'index', key: path, within: [document.path] })
        return answered(path, kept, false)
      }),
  }
}
