import type { Readable } from 'node:stream'
import type { Header } from 'tar-stream'
import { namesOf } from '../programs/library.js'
import { BadArchive, type ArchiveEntry, type Unpacking } from './unpacking.js'

/** The length of a header of a tar. */
export const TAR_BLOCK = 512
const CHECKSUM = { from: 148, to: 156 }
const SPACE = 32

/** Whether a block is the header of a tar: its checksum is right (POSIX.1, ustar interchange format). */
export const isTarHeader = (block: Buffer): boolean => {
  if (block.length < TAR_BLOCK) return false
  const said = Number.parseInt(
    block
      .toString('latin1', CHECKSUM.from, CHECKSUM.to)
      .replace(/[\0 ]+$/, '')
      .trim(),
    8,
  )
  let sum = 0
  for (const [at, byte] of block.subarray(0, TAR_BLOCK).entries())
    sum += at >= CHECKSUM.from && at < CHECKSUM.to ? SPACE : byte
  return said === sum
}

const KINDS: { readonly [type: string]: ArchiveEntry['kind'] } = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'folder',
  symlink: 'link',
  link: 'hard-link',
}

const entryOf = ({ name, type, mode, mtime, linkname }: Header): ArchiveEntry => ({
  name,
  kind: KINDS[type ?? 'file'] ?? 'other',
  mode,
  mtime,
  target: linkname ?? undefined,
})

/** Unpacks a tar stream. */
export const unpackTar = async (source: Readable, unpacking: Unpacking): Promise<void> => {
  const { extract } = namesOf(await import('tar-stream'))
  const tar = extract()
  const fail = (error: Error) => tar.destroy(error)
  source.once('error', fail)
  source.pipe(tar)
  try {
    for await (const entry of tar) await unpacking.add(entryOf(entry.header), entry as unknown as Readable)
  } catch (error) {
    if (error instanceof BadArchive || /^E[A-Z]+$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
    throw new BadArchive('damaged', (error as Error).message)
  } finally {
    source.destroy()
  }
}
