import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { Host } from '../../host.js'
import { codeOf } from '../files/paths.js'
import { archiveFormat, peeked, unpacked } from './archive-format.js'
import { isTarHeader, TAR_BLOCK, unpackTar } from './tar-entries.js'
import { BadArchive, firstBytesOf, Unpacking, type UnpackingOptions } from './unpacking.js'
import { unpackZip } from './zip-entries.js'

const ENDING = /(?:\.tar)?\.(?:zip|tar|tgz|tbz2?|txz|gz|zst|bz2|xz|7z|rar|jar)$/i
/** The name of the content of a single packed file in its folder. */
export const SINGLE_CONTENT = 'content'

/** The name of an archive without its ending. */
export const nameOfArchive = (name: string): string => name.replace(ENDING, '')

/**
 * Unpacks a file into an empty folder, by its content: zip, tar, gz, zst, bz2, xz, 7z or rar.
 *
 * `single`: it was one packed file, which is `SINGLE_CONTENT` in the folder.
 */
export const unpackArchive = async (
  place: Host['place'],
  at: string,
  options: UnpackingOptions,
): Promise<{ readonly single: boolean; readonly unpacking: Unpacking }> => {
  const format = archiveFormat(await firstBytesOf(at, TAR_BLOCK))
  if (!format) throw new BadArchive('damaged', 'it is no archive (expected zip, tar, gz, zst, bz2, xz, 7z or rar)')
  const unpacking = new Unpacking(options)
  let single = false
  if (format === 'zip') {
    await using file = await open(at)
    await unpackZip(file.fd, unpacking)
  } else {
    const source = await unpacked(place, format, at)
    const { head, whole } = await peeked(source, TAR_BLOCK)
    const content = Readable.from(whole, { objectMode: false })
    single = !isTarHeader(head)
    if (single) await unpacking.add({ name: SINGLE_CONTENT, kind: 'file' }, content)
    else await unpackTar(content, unpacking)
  }
  await unpacking.end()
  return { single, unpacking }
}

/** A failed unpacking as the archive's fault; undefined: it has another cause. */
export const badArchiveOf = (error: unknown): BadArchive | undefined => {
  if (error instanceof BadArchive) return error
  const code = codeOf(error) ?? ''
  // The error codes of the format libraries for invalid data.
  return code.startsWith('Z_') || code.startsWith('ZSTD_') || code === 'ERR_STREAM_PREMATURE_CLOSE'
    ? new BadArchive('damaged', 'it is damaged')
    : undefined
}
