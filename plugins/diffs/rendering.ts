import { refuse, type Context, type Host, type SideFile, type SidePair } from '../../sdk/index.js'
import type { RenderedText } from '../workspace/contract.js'
import type { RenderedDiff, RenderedSide } from './contract.js'
import { unifiedDiff } from './unified.js'

/** The largest side that is rendered. */
export const MOST_RENDERED = 50 * 1024 * 1024

const IMAGE = /\(image ([0-9a-f]{12})\)/g

interface ReadSide {
  readonly side: SideFile
  /** Absent: it is too large to be read. */
  readonly text?: RenderedText
}

const readSide = async (host: Pick<Host, 'call'>, name: string, side: SideFile | undefined, context: Context) => {
  if (!side) return undefined
  const { file, hash, blob } = side
  if (file === undefined || hash === undefined) return { side }
  const input = { name, file, hash, ...(blob !== undefined && { blob }) }
  return { side, text: await host.call('workspace.rendered', input, { signal: context.signal }) }
}

const isDocument = ({ text }: ReadSide): boolean => text !== undefined && text.kind !== 'image' && text.kind !== 'other'

const shownSide = ({ side, text }: ReadSide): RenderedSide => {
  const { hash = '', size = 0 } = side
  const bare = { hash, size, deriver: '', notes: [], truncated: false }
  if (!text) return { ...bare, failed: 'it is larger than 50 MiB' }
  const { kind, deriver = '', ...rest } = text
  return deriver === '' ? { ...bare, failed: `it is no document: ${kind}` } : { hash, size, deriver, ...rest }
}

/** How many pictures differ between two texts. */
const imagesChanged = (before: string, after: string): number => {
  const counts = new Map<string, number>()
  const count = (text: string, by: number) => {
    for (const [, hash] of text.matchAll(IMAGE)) counts.set(hash!, (counts.get(hash!) ?? 0) + by)
  }
  count(before, -1)
  count(after, 1)
  const [gone, come] = [-1, 1].map(sign =>
    [...counts.values()].reduce((sum, each) => sum + Math.max(0, sign * each), 0),
  ) as [number, number]
  return Math.max(gone, come)
}

/** Renders both sides of a document at once, and compares their texts. */
export const renderedDiff = async (
  host: Pick<Host, 'call'>,
  { path, from = path, before: earlier, after: later }: SidePair,
  context: Context,
): Promise<RenderedDiff> => {
  const read = await Promise.all([readSide(host, from, earlier, context), readSide(host, path, later, context)])
  const there = read.filter(side => side !== undefined)
  const document = there.findLast(isDocument)
  const kind = document?.text?.kind
  if (!kind && there.some(({ text }) => text)) {
    const found = there.findLast(({ text }) => text)!.text!.kind
    refuse('unprocessable', `${path} is no document (${found}): GET /diff/raw gives its bytes`)
  }
  const [before, after] = read.map(side => side && shownSide(side))
  const [one, other] = [before, after].map(side => (side ? side.markdown : ''))
  const compared = one !== undefined && other !== undefined
  const same = compared && before !== undefined && after !== undefined && one === other
  const images = compared ? imagesChanged(one, other) : 0
  return {
    path,
    ...(from !== path && { from }),
    kind: kind ?? 'other',
    ...(before && { before }),
    ...(after && { after }),
    same,
    ...(compared && !same && { unified: await unifiedDiff({ before: from, after: path }, one, other) }),
    ...(compared && images > 0 && { imagesChanged: images }),
  }
}
