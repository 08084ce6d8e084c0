import type { FileHandle } from 'node:fs/promises'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { openFile } from '../../sdk/node/files/open-path.js'
import type { RevisedMasker } from '../../sdk/node/access/value-masker.js'
import { openReal } from '../../sdk/node/files/real-path.js'
import type { BlockReason } from './contract.js'
import { MOST, nameProblem } from './guards.js'
import type { Outbox } from './outbox.js'
import { PieceHashes, filePieces } from './pieces.js'
import { diskIdentityOf, OUTBOX } from './public-folder.js'
import type { StoredEntry, StoredFile } from './stored-entry.js'
import { TextScan } from './text-scan.js'

/** A file as it is now: open, or why it is not served. */
export type FileVerdict = { readonly handle: FileHandle } | { readonly reason: BlockReason } | 'missing'

interface Known {
  readonly identity: string
  readonly revision: number
  readonly reason?: BlockReason
}

/** Judges published files by every guard; reads a file again only when it or the stored secrets changed. */
export class Verdicts {
  readonly #outbox: Outbox
  readonly #masker: () => Promise<RevisedMasker>
  readonly #known = new WeakMap<StoredFile, Known>()
  readonly #reading = new KeyedMutex()

  constructor(outbox: Outbox, masker: () => Promise<RevisedMasker>) {
    this.#outbox = outbox
    this.#masker = masker
  }

  /** Files that were read while they were published. */
  published({ files }: StoredEntry, revision: number): void {
    for (const file of files) this.#known.set(file, { identity: file.identity, revision })
  }

  /** Opens a file, unless a guard refuses it. Close the handle. */
  async of({ expiresAt = Infinity }: Pick<StoredEntry, 'expiresAt'>, file: StoredFile): Promise<FileVerdict> {
    if (expiresAt <= Date.now()) return { reason: 'expired' }
    for (const name of file.path.split('/')) {
      const reason = nameProblem(name)
      if (reason) return { reason }
    }
    const found = await openReal(this.#outbox.tree, `${OUTBOX}/${file.path}`)
    if (found === 'missing') return 'missing'
    if (found === 'link') return { reason: 'link' }
    let handle: FileHandle | undefined
    try {
      if (!found.stats.isFile()) return { reason: 'unlisted' }
      if (found.stats.size > MOST.fileBytes) return { reason: 'too-large' }
      handle = await openFile(found, file.path)
      const reason = await this.#reasonOf(handle, file)
      if (reason) return { reason }
      const verdict = { handle }
      handle = undefined
      return verdict
    } finally {
      await Promise.all([handle?.close(), found.close()])
    }
  }

  async #reasonOf(handle: FileHandle, file: StoredFile): Promise<BlockReason | undefined> {
    const [identity, { masker, revision }] = [await diskIdentityOf(handle), await this.#masker()]
    const known = this.#known.get(file)
    if (known?.identity === identity && known.revision === revision) return known.reason
    return this.#reading.with(file.path, async () => {
      const meanwhile = this.#known.get(file)
      if (meanwhile?.identity === identity && meanwhile.revision === revision) return meanwhile.reason
      const [hashes, scan] = [new PieceHashes(), new TextScan(masker)]
      for await (const piece of filePieces(handle)) {
        hashes.push(piece)
        scan.push(piece)
      }
      scan.end()
      const reason = scan.found
        ? 'credential-content'
        : hashes.end().sha256 === file.sha256
          ? undefined
          : ('unlisted' as const)
      this.#known.set(file, { identity, revision, ...(reason && { reason }) })
      return reason
    })
  }
}
