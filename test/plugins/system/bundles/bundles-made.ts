import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import type { BundleManifest } from '../../../../plugins/system/bundles/manifest.js'
import { withSeal } from '../../../../plugins/system/bundles/seal.js'

type HeaderArgument = Parameters<ReturnType<typeof pack>['entry']>[0]

/** An entry of a crafted archive, in the manifest and in the archive. */
export interface Made {
  readonly path: string
  readonly text?: string | Buffer
  readonly link?: string
  /** Differences in the manifest. */
  readonly says?: object
  /** Differences in the archive. */
  readonly has?: object
  /** The entry is only in the manifest or only in the archive. */
  readonly only?: 'manifest' | 'archive'
}

const of = async (bytes: AsyncIterable<Buffer>): Promise<Buffer> => buffer(bytes)

/** The bytes of a plain file in an archive (POSIX.1-1988, ustar). */
const plainEntry = (name: string, text: string | Buffer): Buffer => {
  const size = Buffer.byteLength(text)
  const entry = Buffer.alloc(512 + Math.ceil(size / 512) * 512)
  entry.write(name, 0)
  entry.write(`000644 \x00000000 \x00000000 \x00${size.toString(8).padStart(11, '0')} 00000000000 `, 100)
  entry.write('        0', 148)
  entry.write('ustar\x0000', 257)
  const sum = entry.subarray(0, 512).reduce((all, byte) => all + byte, 0)
  entry.write(`${sum.toString(8).padStart(6, '0')}\x00 `, 148)
  entry.set(Buffer.from(text), 512)
  return entry
}

/** The bytes of an entry of any other type. */
const oddEntry = async (header: HeaderArgument, text: string | Buffer): Promise<Buffer> => {
  const tar = pack()
  if (header.type === undefined || header.type === 'file') tar.entry(header, text)
  else tar.entry(header)
  tar.finalize()
  const bytes = await of(tar as unknown as AsyncIterable<Buffer>)
  return bytes.subarray(0, bytes.length - 1024)
}

/** Writes a crafted archive, sealed like those of a sandbox. */
export const made = async (
  to: string,
  entries: readonly Made[],
  patch: Partial<BundleManifest> | object = {},
  loose = Buffer.alloc(0),
): Promise<string> => {
  const manifest = {
    format: 'sandbox-bundle',
    version: 1,
    whole: true,
    secrets: false,
    repositories: [],
    groups: [],
    from: { sandboxId: 'elsewhere', version: '0.0.0', createdAt: 1 },
    entries: entries
      .filter(({ only }) => only !== 'archive')
      .map(({ path, text = '', link, says }) => ({
        path,
        size: Buffer.byteLength(link === undefined ? text : ''),
        sha256: createHash('sha256')
          .update(link ?? text)
          .digest('base64url'),
        ...(link !== undefined && { link }),
        ...says,
      })),
    ...patch,
  }
  const blocks = [plainEntry('manifest.json', JSON.stringify(manifest))]
  for (const { path, text = '', link, has, only } of entries) {
    if (only === 'manifest') continue
    blocks.push(
      link === undefined && !has && path.length <= 100
        ? plainEntry(path, text)
        : await oddEntry({ name: path, ...(link !== undefined && { type: 'symlink', linkname: link }), ...has }, text),
    )
  }
  const whole = gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024), loose]))
  writeFileSync(
    to,
    await of(
      withSeal(
        (async function* () {
          yield whole
        })(),
      ),
    ),
  )
  return to
}

/** Copies an archive with one byte changed. */
export const changed = (from: string, to: string, at: number): void => {
  const bytes = readFileSync(from)
  bytes[at < 0 ? bytes.length + at : at]! ^= 0x10
  writeFileSync(to, bytes)
}
