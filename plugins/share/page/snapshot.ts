import { createHash } from 'node:crypto'
import { refuse, type Context, type Host } from '../../../sdk/index.js'
import type { CurrentMasker } from '../../../sdk/node/access/value-masker.js'
import { escapedHtml } from '../../../sdk/node/pages/message-page.js'
import type { DroppedFile, Redaction, ShareDetail } from '../contract.js'
import { PictureFiles, type PagePicture } from './picture-files.js'
import { Reduction } from './reduction.js'
import { rowHtml } from './rows.js'
import { STYLE } from './style.js'

const PAGE = 200
const MOST_BYTES = 64 * 1024 * 1024

/** What is to be shown. */
export interface SnapshotAsked {
  readonly conversationId: string
  readonly detail: ShareDetail
  /** Left out: that of the conversation. */
  readonly title?: string
}

/** The page of a conversation at one moment, with its pictures. */
export interface PageSnapshot {
  readonly title: string
  readonly html: Buffer
  readonly pictures: readonly PagePicture[]
  readonly dropped: readonly DroppedFile[]
  readonly redactions: Redaction[]
  readonly messages: number
  /** Rows of the record. */
  readonly rows: number
  readonly sizeBytes: number
}

/** What names a page and its pictures byte for byte. */
export const pageDigestOf = ({ html, pictures }: Pick<PageSnapshot, 'html' | 'pictures'>): string => {
  const digest = createHash('sha256')
  const add = (name: string, bytes: Buffer) => void digest.update(`${name}\0${bytes.length}\0`).update(bytes)
  add('', html)
  for (const { name, bytes } of pictures) add(name, bytes)
  return digest.digest('hex')
}

/** Makes the page of a conversation; the only way from a record to what leaves. */
export const snapshotOf = async (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  secrets: CurrentMasker,
  { conversationId, detail, title: given }: SnapshotAsked,
  context: Context,
): Promise<PageSnapshot> => {
  const [{ masker }, hosts] = [await secrets.now(), await hostsOf(host)]
  // While the tokens cannot be read nothing is shown: the values would be.
  const known = (await host.serves('shield.known')) ? await host.call('shield.known', { conversationId }) : undefined
  const reduction = new Reduction({ masker, place: host.place, hosts, ...(known && { tokens: known.tokens }) })
  const pictures = new PictureFiles(host.place.workspace)
  const pages: string[] = []
  let [messages, bytes, rows, title] = [0, 0, 0, given ?? '']
  for (let before: number | undefined; before !== 0;) {
    context.signal.throwIfAborted()
    const asked = { id: conversationId, limit: PAGE, ...(before !== undefined && { before }) }
    const page = await host.call('agent.record', asked, { as: context, signal: context.signal })
    if (before === undefined) [rows, title] = [page.total, given ?? page.title]
    const shown: string[] = []
    for (const row of page.messages) {
      const html = await rowHtml(row, { detail, reduction, pictures })
      if (html === undefined) continue
      shown.push(html)
      messages += 1
      bytes += Buffer.byteLength(html)
      if (bytes + pictures.sizeBytes > MOST_BYTES)
        refuse('too-large', `expected at most ${MOST_BYTES} bytes with pictures, found more`)
    }
    pages.unshift(shown.join(''))
    before = page.messages[0]?.index ?? 0
  }
  if (messages === 0) refuse('unprocessable', `${conversationId} has no message to show yet`)
  const shownTitle = reduction.text(title)
  const html = Buffer.from(pageHtml(shownTitle, pages.join('')))
  return {
    ...{ title: shownTitle, html, messages, rows },
    pictures: pictures.pictures,
    dropped: pictures.dropped,
    redactions: reduction.counts,
    sizeBytes: html.length + pictures.sizeBytes,
  }
}

const hostsOf = async (host: Pick<Host, 'call'>): Promise<string[]> => {
  const { listeners } = await host.call('kernel.listeners')
  return listeners.flatMap(({ host: name, port }) => [name, '127.0.0.1', 'localhost'].map(each => `${each}:${port}`))
}

const pageHtml = (title: string, rows: string): string =>
  '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
  + '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">'
  + `<meta name="referrer" content="no-referrer"><title>${escapedHtml(title)}</title><style>${STYLE}</style></head>`
  + `<body><main><h1 dir="auto">${escapedHtml(title)}</h1>\n${rows}</main></body></html>\n`
