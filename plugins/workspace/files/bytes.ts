import { refuse, type HttpFacts } from '../../../sdk/index.js'
import { partOf } from '../../../sdk/node/files/byte-part.js'
import { attachmentNamed, isActiveType, mediaTypeOf } from '../../../sdk/node/files/media-type.js'
import { openFile, type OpenedPath, shownPath } from '../../../sdk/node/files/open-path.js'
import type { GivenBytes } from '../../../sdk/contract.js'

const PIECE = 256 * 1024

/** How bytes are served. */
export interface ServeOptions {
  readonly http?: Pick<HttpFacts, 'range' | 'ifRange'> | undefined
  /** The most that is sent without a range. */
  readonly most?: number
  /** Types that browsers save under the file's name instead of showing them; left out: none. */
  readonly saved?: 'active' | 'all'
  /** Opens the file again when it is read. */
  readonly again: () => Promise<OpenedPath>
}

/** The bytes of an open file, or the part that was asked for, read at the pace of the client. */
export const servedBytes = async (
  opened: Pick<OpenedPath, 'stats' | 'path'>,
  { http = {}, most = Infinity, saved, again }: ServeOptions,
): Promise<GivenBytes> => {
  const { ino, dev, size, mtimeMs } = opened.stats
  const name = opened.path.split('/').at(-1)!
  const tag = `"${ino.toString(36)}-${size.toString(36)}-${Math.trunc(mtimeMs * 1000).toString(36)}"`
  const { range, ifRange } = http
  const part = ifRange === undefined || ifRange === tag ? partOf(range, size) : undefined
  if (!part && size > most)
    refuse(
      'too-large',
      `${shownPath(name)} has ${size} bytes, and at most ${most} are sent whole: ask for a range of it`,
    )
  const { first, last } = part ?? { first: 0, last: size - 1 }
  const type = (await mediaTypeOf(name)) ?? 'application/octet-stream'
  const data = async function* () {
    await using now = await again()
    if (now.stats.ino !== ino || now.stats.dev !== dev) throw new Error(`${name} was replaced while it was sent`)
    if (last < first) return
    const handle = await openFile(now, name)
    let sent = 0
    for await (const piece of handle.createReadStream({ start: first, end: last, highWaterMark: PIECE })) {
      sent += (piece as Buffer).length
      yield piece as Buffer
    }
    if (sent !== last - first + 1) throw new Error(`${name} became shorter while it was sent`)
  }
  return {
    'content-type': type,
    headers: {
      etag: tag,
      'accept-ranges': 'bytes',
      'cache-control': 'no-store',
      'content-length': String(last - first + 1),
      ...(isActiveType(type) && { 'content-security-policy': 'sandbox' }),
      ...((saved === 'all' || (saved === 'active' && isActiveType(type))) && {
        'content-disposition': attachmentNamed(name),
      }),
      ...(part && { 'content-range': `bytes ${first}-${last}/${size}` }),
    },
    data: data(),
    ...(part && { status: 206 as const }),
  }
}
