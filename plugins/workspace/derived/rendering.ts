import { open, readFile, type FileHandle } from 'node:fs/promises'
import { refuse, type Handlers, type Host, type SideFile } from '../../../sdk/index.js'
import { openExisting, openFile, type PathTree } from '../../../sdk/node/files/open-path.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { presentSides, sideFile } from '../../../sdk/node/files/side-files.js'
import { treeFor } from '../../../sdk/node/access/caller-tree.js'
import type { DerivedCalls, DiffKind, RenderedText } from './contract.js'
import type { DerivedStore, KeptDerivation } from './derived-store.js'
import { Deriver, officeProgram, refuseWithoutOffice } from './deriver.js'
import {
  documentFormat,
  formatNamed,
  HEAD_BYTES,
  isOlder,
  isPicture,
  TAIL_BYTES,
  type DocumentFormat,
} from './document-format.js'

/** The calls of other groups. */
export type RenderCalls = Pick<DerivedCalls, Extract<keyof DerivedCalls, `workspace.${string}`>>

const LIMITS = { limitMs: 60_000, waiting: 4 }
/** After that a failure is tried again. */
const FAILED_MS = 3_600_000
const OFFICE = 'LibreOffice'

/** What a format shows as; text formats are compared as text. */
const KINDS: { readonly [format in DocumentFormat]?: DiffKind } = {
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

/** The first and the last bytes of a file, which say what it is. */
export const endsOf = async (handle: FileHandle, size: number): Promise<{ head: Buffer; tail: Buffer }> => {
  const part = async (length: number, from: number) => {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, from)
    return buffer.subarray(0, bytesRead)
  }
  return { head: await part(HEAD_BYTES, 0), tail: await part(TAIL_BYTES, Math.max(0, size - TAIL_BYTES)) }
}

const kindNamed = (name: string): DiffKind =>
  KINDS[formatNamed(name) ?? 'html'] ?? (isPicture(name) ? 'image' : 'other')

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
export const renderCalls = (host: Host, store: DerivedStore, deriver: Deriver): Handlers<RenderCalls> => {
  const assertInData = (path: string): void => {
    if (!contains(host.place.data, path)) refuse('invalid', `expected a path in the data folder, found ${path}`)
  }
  return {
    'workspace.rendered': async ({ name, file, hash, blob }) => {
      assertInData(file)
      await using handle = await open(file, 'r')
      const { head, tail } = await endsOf(handle, (await handle.stat()).size)
      const picture = isPicture(name, head)
      const format = picture ? undefined : documentFormat(name, head, tail)
      const kind = format && KINDS[format]
      if (!format || !kind) return { kind: picture ? 'image' : 'other', notes: [], truncated: false }
      const key = Deriver.keyOf(hash, format)
      const kept = await store.get(key)
      const stale = kept && 'failed' in kept.derivation && kept.derivedAt < Date.now() - FAILED_MS
      if (isOlder(format) && !kept && (await officeProgram()) === undefined) refuseWithoutOffice(format)
      const shown = kept && !stale ? kept : await deriver.derive(key, format, () => readFile(file), LIMITS)
      const named = formatNamed(name)
      if (blob !== undefined && named === format) await store.alias(Deriver.aliasOf(blob, format), key)
      return renderedOf(kind, shown)
    },

    'workspace.documents': async ({ files }) => {
      const office = (await officeProgram()) !== undefined
      return {
        files: await Promise.all(
          files.map(async ({ name, blobs }) => {
            const format = formatNamed(name)
            const known = await Promise.all(blobs.map(blob => format && store.knows(Deriver.aliasOf(blob, format))))
            return {
              kind: kindNamed(name),
              ...(isOlder(format) && !office && { needs: OFFICE }),
              cached: known.length > 0 && known.every(Boolean),
            }
          }),
        ),
      }
    },

    'workspace.renderers': async () => {
      const office = (await officeProgram()) !== undefined
      return {
        renderers: Object.keys(KINDS).map(format => {
          const available = office || !isOlder(format as DocumentFormat)
          return { format, available, ...(!available && { needs: OFFICE }) }
        }),
      }
    },

    'workspace.sides': async ({ before, after, agent, folder, most }, context) => {
      assertInData(folder)
      const tree = await treeFor(host, agent, context)
      const [one, other] = [await writtenFile(tree, before, folder, most), await writtenFile(tree, after, folder, most)]
      return { path: after, ...(before !== after && { from: before }), ...presentSides(one, other) }
    },
  }
}
