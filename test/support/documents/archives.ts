import { pack, type Header } from 'tar-stream'
import { ZipFile } from 'yazl'

const allOf = async (source: AsyncIterable<unknown>): Promise<Buffer> => {
  const pieces: Buffer[] = []
  for await (const piece of source) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

/** A tar of these entries. */
export const tarOf = async (...entries: readonly (readonly [Partial<Header>, string?])[]): Promise<Buffer> => {
  const tar = pack()
  for (const [header, content = ''] of entries) tar.entry(header as Header, content)
  tar.finalize()
  return allOf(tar)
}

/** A zip with these entries. */
export const zipOf = async (fill: (zip: ZipFile) => void): Promise<Buffer> => {
  const zip = new ZipFile()
  fill(zip)
  zip.end()
  return allOf(zip.outputStream)
}
