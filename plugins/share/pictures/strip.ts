import { withoutAvifMetadata } from './avif.js'
import { withoutGifMetadata } from './gif.js'
import { withoutJpegMetadata } from './jpeg.js'
import { withoutPngMetadata } from './png.js'
import { withoutWebpMetadata } from './webp.js'

/** A picture without what it says about where and how it was made. */
export interface BarePicture {
  readonly type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'image/avif'
  readonly extension: string
  readonly bytes: Buffer
}

/**
 * Takes all metadata out of a picture and leaves its pixels as they are; undefined: it is of none of the types.
 *
 * Only the parts that a decoder needs are copied, so that unknown ones do not get out either.
 *
 * @throws BrokenPicture
 */
export const withoutMetadata = (bytes: Buffer): BarePicture | undefined => {
  if (bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex')))
    return { type: 'image/png', extension: 'png', bytes: withoutPngMetadata(bytes) }
  if (bytes[0] === 0xff && bytes[1] === 0xd8)
    return { type: 'image/jpeg', extension: 'jpg', bytes: withoutJpegMetadata(bytes) }
  if (/^GIF8[79]a$/.test(bytes.toString('latin1', 0, 6)))
    return { type: 'image/gif', extension: 'gif', bytes: withoutGifMetadata(bytes) }
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP')
    return { type: 'image/webp', extension: 'webp', bytes: withoutWebpMetadata(bytes) }
  if (/^ftypavi[fs]$/.test(bytes.toString('latin1', 4, 12)))
    return { type: 'image/avif', extension: 'avif', bytes: withoutAvifMetadata(bytes) }
  return undefined
}
