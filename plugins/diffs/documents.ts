import type { ChangedSides, Context, Host } from '../../sdk/index.js'
import type { NamedDocument } from '../workspace/contract.js'
import type { ChangedDocuments, DocumentRow } from './contract.js'

const MOST_LISTED = 500
const BATCH = 500

const reasonOf = ({ kind, needs }: NamedDocument): string | undefined => {
  if (needs !== undefined) return `reading it needs ${needs}, which is not installed`
  if (kind === 'image') return 'it is a picture'
  return kind === 'other' ? 'its format is none that has a text form' : undefined
}

const rowOf = ({ path, from, before, after }: ChangedSides, named: NamedDocument): DocumentRow => {
  const reason = reasonOf(named)
  return {
    path,
    ...(from !== undefined && { from }),
    kind: named.kind,
    before: before !== undefined,
    after: after !== undefined,
    renderable: reason === undefined,
    ...(reason !== undefined && { reason }),
    cached: named.cached && [before, after].every(side => !side || side.blob !== undefined),
  }
}

/** One page of the changed files that are not plain text. */
export const documentsIn = async (
  host: Pick<Host, 'call'>,
  changes: readonly ChangedSides[],
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
  { signal }: Pick<Context, 'signal'>,
): Promise<ChangedDocuments> => {
  const most = Math.min(limit, MOST_LISTED)
  const left = changes
    .filter(({ path }) => after === undefined || path > after)
    .sort((one, other) => (one.path < other.path ? -1 : 1))
  const rows: DocumentRow[] = []
  for (let at = 0; at < left.length && rows.length <= most; at += BATCH) {
    const batch = left.slice(at, at + BATCH)
    const files = batch.map(({ path, before, after: later }) => ({
      name: path,
      blobs: [before?.blob, later?.blob].filter(blob => blob !== undefined),
    }))
    const named = (await host.call('workspace.documents', { files }, { signal })).files
    for (const [index, change] of batch.entries()) {
      const found = named[index]!
      if ((found.kind !== 'other' && !found.binary) || change.binary === true) rows.push(rowOf(change, found))
    }
  }
  const { renderers } = await host.call('workspace.renderers', undefined, { signal })
  return { documents: rows.slice(0, most), hasMore: rows.length > most, renderers }
}
