import { open, readFile } from 'node:fs/promises'
import { refuse, type Handlers, type Host, type SideFile } from '../../../sdk/index.js'
import { openExisting, openFile, type PathTree } from '../../../sdk/node/files/open-path.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { presentSides, sideFile } from '../../../sdk/node/files/side-files.js'
import { treeFor } from '../../../sdk/node/access/caller-tree.js'
import type { DerivedCalls, DiffKind, RenderedText } from './contract.js'
import type { KeptDerivation } from './derived-store.js'
import { formatNamed, isOlder, isPicture, type DocumentFormat } from './document-format.js'
import { blobKey, DocumentReaders, endsOf, KINDS, diffKindOf, textKey, type DocumentReader } from './document-reader.js'
import type { DerivedParts } from './document-texts.js'
import { officeProgram, refuseWithoutOffice } from './read-format.js'

/** The calls of other groups. */
export type RenderCalls = Pick<DerivedCalls, Extract<keyof DerivedCalls, `workspace.${string}`>>

const LIMITS = { limitMs: 60_000, waiting: 4 }
/** After that a failure is tried again. */
const FAILED_MS = 3_600_000
const OFFICE = 'LibreOffice'

const kindNamed = (name: string, reader: DocumentReader | undefined): DiffKind =>
  diffKindOf(reader) ?? (isPicture(name) ? 'image' : 'other')

const renderedOf = (kind: DiffKind, { deriver, derivation }: KeptDerivation): RenderedText =>
  'failed' in derivation
    ? { kind, deriver, notes: [], truncated: false, failed: derivation.failed }
    : {
        kind,
        deriver,
        markdown: derivation.markdown,
        ...(derivation.title !== undefined && { title: derivation.title }),
        notes: [...derivation.notes],
        ...(derivation.parts !== undefined && { parts: derivation.parts }),
        truncated: derivation.truncated,
      }

/** One file of a tree, written into a folder. */
const writtenFile = async (tree: PathTree, path: string, folder: string, most: number): Promise<SideFile> => {
  await using found = await openExisting(tree, path)
  await using handle = await openFile(found, path)
  return (await sideFile(folder, found.stats.size > most ? 'large' : await handle.readFile()))!
}

/** Serves the texts of documents to other groups. */
export const renderCalls = (host: Host, { store, deriver, readers }: DerivedParts): Handlers<RenderCalls> => {
  const assertInData = (path: string): void => {
    if (!contains(host.place.data, path)) refuse('invalid', `expected a path in the data folder, found ${path}`)
  }
  return {
    'workspace.rendered': async ({ name, file, hash, blob }) => {
      assertInData(file)
      await using handle = await open(file, 'r')
      const { size } = await handle.stat()
      const { head } = await endsOf(handle, size)
      const picture = isPicture(name, head)
      const reader = picture ? undefined : await readers.of(name, handle, size)
      const kind = diffKindOf(reader)
      if (!reader || !kind) return { kind: picture ? 'image' : 'other', notes: [], truncated: false }
      const key = textKey(hash, reader)
      const kept = await store.get(key)
      const stale = kept && 'failed' in kept.derivation && kept.derivedAt < Date.now() - FAILED_MS
      const format = reader.kind === 'format' ? reader.format : undefined
      if (isOlder(format) && !kept && (await officeProgram()) === undefined) refuseWithoutOffice(format)
      const source = { name, bytes: () => readFile(file) }
      const shown = kept && !stale ? kept : await deriver.derive(key, reader, source, LIMITS)
      if (blob !== undefined && (format === undefined || formatNamed(name) === format))
        await store.alias(blobKey(blob, reader), key)
      return renderedOf(kind, shown)
    },

    'workspace.documents': async ({ files }) => {
      const [office, types] = [(await officeProgram()) !== undefined, await readers.types()]
      return {
        files: await Promise.all(
          files.map(async ({ name, blobs }) => {
            const reader = isPicture(name) ? undefined : DocumentReaders.named(name, types)
            const format = reader?.kind === 'format' ? reader.format : undefined
            const known = await Promise.all(blobs.map(blob => reader && store.knows(blobKey(blob, reader))))
            return {
              kind: kindNamed(name, reader),
              ...(isOlder(format) && !office && { needs: OFFICE }),
              ...(reader?.kind === 'extension' && { binary: true as const }),
              cached: known.length > 0 && known.every(Boolean),
            }
          }),
        ),
      }
    },

    'workspace.renderers': async () => {
      const [office, types] = [(await officeProgram()) !== undefined, await readers.types()]
      const own = Object.keys(KINDS).map(format => {
        const available = office || !isOlder(format as DocumentFormat)
        return { format, available, ...(!available && { needs: OFFICE }) }
      })
      const others = types.filter(({ ending }) => formatNamed(`x.${ending}`) === undefined)
      return { renderers: [...own, ...others.map(({ ending: format }) => ({ format, available: true }))] }
    },

    'workspace.sides': async ({ before, after, agent, folder, most }, context) => {
      assertInData(folder)
      const tree = await treeFor(host, agent, context)
      const [one, other] = [await writtenFile(tree, before, folder, most), await writtenFile(tree, after, folder, most)]
      return { path: after, ...(before !== after && { from: before }), ...presentSides(one, other) }
    },
  }
}
