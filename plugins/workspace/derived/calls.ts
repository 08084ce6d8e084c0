import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { FileHandle } from 'node:fs/promises'
import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import { openExisting, openFile, shownPath, type PathTree } from '../../../sdk/node/files/open-path.js'
import { hashOfFile } from '../upload/staging.js'
import { sharedTree } from '../../../sdk/node/access/caller-tree.js'
import type { DerivedCalls, DerivedText, NotDerived } from './contract.js'
import { DerivedStore, type KeptDerivation } from './derived-store.js'
import { Deriver } from './deriver.js'
import { documentFormat, type DocumentFormat } from './document-format.js'
import { endsOf, renderCalls } from './rendering.js'

const MOST_FILE = 200 * 1024 * 1024
const CHARACTERS_A_TOKEN = 4
const MOST_REMEMBERED = 1_000

/** An open document, and its derived state. */
interface OpenDocument {
  readonly path: string
  readonly format: DocumentFormat | undefined
  readonly size: number
  readonly handle: FileHandle
}

const withDocument = async <T>(
  tree: PathTree,
  path: string,
  work: (document: OpenDocument) => Promise<T>,
): Promise<T> => {
  await using found = await openExisting(tree, path)
  await using handle = await openFile(found, path)
  const { size } = found.stats
  const { head, tail } = await endsOf(handle, size)
  return await work({ path: found.path, format: documentFormat(found.path, head, tail), size, handle })
}

const answered = (
  path: string,
  { deriver, derivedAt, derivation }: KeptDerivation,
  stale: boolean,
): DerivedText | NotDerived =>
  'failed' in derivation
    ? { state: 'broken', path, derivable: true, reason: derivation.failed }
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

/** Derives the text form of documents. */
export const derivedCalls = (host: Host): Handlers<DerivedCalls> => {
  const store = new DerivedStore(join(host.place.folder, 'derived'))
  const deriver = new Deriver(host.place, store, host.signal)
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
  const keyOf = async ({ handle }: OpenDocument, format: DocumentFormat) =>
    Deriver.keyOf(await hashOfFile(handle), format)

  return {
    ...renderCalls(host, store, deriver),
    'GET /workspace/derived': async ({ path }, context) =>
      withDocument(await sharedTree(host, context), path, async document => {
        const { format, size } = document
        if (!format) return unknown(path)
        if (size > MOST_FILE) return { state: 'idle', path, derivable: false, reason: 'it is larger than 200 MiB' }
        const key = await keyOf(document, format)
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
      withDocument(await sharedTree(host, context), path, async document => {
        const { format, size, handle } = document
        if (size > MOST_FILE)
          refuse('too-large', `${shownPath(path)} has ${size} bytes, and documents have at most ${MOST_FILE}`)
        if (!format) return unknown(path)
        const key = await keyOf(document, format)
        const known = await store.get(key)
        if (known && !('failed' in known.derivation)) {
          remember(document.path, key)
          return answered(path, known, false)
        }
        const read = async () => {
          const bytes = Buffer.alloc(size)
          await handle.read(bytes, 0, size, 0)
          const now = Deriver.keyOf(createHash('sha256').update(bytes).digest('hex'), format)
          return now === key ? bytes : refuse('conflict', `${shownPath(path)} changes while it is read: try again`)
        }
        const kept = await deriver.derive(key, format, read)
        remember(document.path, key)
        await host.call('kernel.events.publish', { domain: 'index', key: path, within: [document.path] })
        return answered(path, kept, false)
      }),
  }
}
