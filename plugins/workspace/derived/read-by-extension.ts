import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import type { DocumentType } from '../../extensions/contract.js'
import { MOST_MARKDOWN } from './document-format.js'
import type { Derivation } from './derive-child.js'
import type { FormatReading } from './read-format.js'

/** The largest document that an extension gets. */
export const MOST_FOR_EXTENSION = 20 * 1024 * 1024

/** Asks extensions for the text of documents; each gets its bytes from a file that is gone afterwards. */
export class ExtensionReading {
  readonly #host: Pick<Host, 'call'>
  readonly #folder: string

  constructor(host: Pick<Host, 'call' | 'place'>) {
    this.#host = host
    this.#folder = join(host.place.folder, 'given')
    // What a daemon that was killed left behind.
    rmSync(this.#folder, { recursive: true, force: true })
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
  }

  async read(
    { extension, document }: DocumentType,
    name: string,
    bytes: Buffer,
    { signal }: Pick<FormatReading, 'signal'>,
  ): Promise<Derivation> {
    if (bytes.length > MOST_FOR_EXTENSION)
      return { failed: `extensions read documents of at most ${MOST_FOR_EXTENSION / 1024 / 1024} MiB` }
    const file = join(this.#folder, randomUUID())
    try {
      await writeFile(file, bytes, { mode: 0o600 })
      const found = await this.#host.call('extensions.document', { extension, document, name, file }, { signal })
      return 'failed' in found ? found : { ...found, ...cut(found.markdown) }
    } finally {
      await rm(file, { force: true })
    }
  }
}

const cut = (markdown: string): { markdown: string; truncated: boolean } => {
  const bytes = Buffer.from(markdown)
  if (bytes.length <= MOST_MARKDOWN) return { markdown, truncated: false }
  const kept = bytes.subarray(0, MOST_MARKDOWN - 3).toString()
  return { markdown: kept.replace(/\ufffd+$/, ''), truncated: true }
}
