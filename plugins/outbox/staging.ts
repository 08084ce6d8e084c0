import { constants } from 'node:fs'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { refuse } from '../../sdk/index.js'
import type { Masker } from '../../sdk/node/access/masker.js'
import { writeFailure } from '../../sdk/node/files/disk.js'
import { openExisting, openFile, shownPath, type OpenedPath, type PathTree } from '../../sdk/node/files/open-path.js'
import { openReal } from '../../sdk/node/files/real-path.js'
import type { BlockedFile, BlockReason } from './contract.js'
import { MOST, nameProblem, REASONS } from './guards.js'
import { diskIdentityOf } from './public-folder.js'
import { PieceHashes, filePieces } from './pieces.js'
import type { StoredFile } from './stored-entry.js'
import { TextScan } from './text-scan.js'

/** What may still be published: bytes and files. */
export interface Quota {
  bytes: number
  files: number
}

/** What was copied into staging. */
export interface StagedCopy {
  readonly isFolder: boolean
  readonly files: StoredFile[]
  readonly blocked: BlockedFile[]
}

/** Copies a file or folder of a tree, without what no guard lets out. */
export const stageCopy = async (
  from: { readonly tree: PathTree; readonly path: string },
  to: { readonly place: string; readonly name: string },
  masker: Masker,
  quota: Quota,
  signal: AbortSignal,
): Promise<StagedCopy> => {
  const copy = new StagingCopy(from.tree, to, masker, quota, signal)
  await using found = await openExisting(from.tree, from.path)
  const own = basename(found.path === '.' ? from.tree.root : found.path)
  const problem = nameProblem(own) ?? nameProblem(to.name)
  if (problem) refuse('unprocessable', blockedWords(from.path, problem))
  if (found.stats.isDirectory()) {
    await copy.folder(found, [], 1)
    if (copy.files.length === 0) {
      const why = copy.blocked.length > 0 ? `all ${copy.blocked.length} files in it are blocked` : 'it has no file'
      refuse('unprocessable', `nothing in ${shownPath(from.path)} can be published: ${why}`)
    }
    return { isFolder: true, files: copy.files, blocked: copy.blocked }
  }
  const reason = await copy.file(found, [])
  if (reason === 'too-large') refuse('too-large', `${shownPath(from.path)} is not published: ${REASONS[reason]}`)
  if (reason) refuse('unprocessable', blockedWords(from.path, reason))
  return { isFolder: false, files: copy.files, blocked: [] }
}

const blockedWords = (path: string, reason: BlockReason): string =>
  `${shownPath(path)} is not published: ${REASONS[reason]} (${reason})`

class StagingCopy {
  readonly files: StoredFile[] = []
  readonly blocked: BlockedFile[] = []
  readonly #tree: PathTree
  readonly #place: string
  readonly #name: string
  readonly #masker: Masker
  readonly #quota: Quota
  readonly #signal: AbortSignal

  constructor(
    tree: PathTree,
    { place, name }: { readonly place: string; readonly name: string },
    masker: Masker,
    quota: Quota,
    signal: AbortSignal,
  ) {
    this.#tree = tree
    this.#place = place
    this.#name = name
    this.#masker = masker
    this.#quota = quota
    this.#signal = signal
  }

  /** Copies a folder; `within` are the names from the published one. */
  async folder(folder: OpenedPath, within: readonly string[], level: number): Promise<void> {
    if (level > MOST.levels) refuse('too-large', `expected at most ${MOST.levels} folders in each other, found more`)
    const entries = await readdir(folder.at, { withFileTypes: true })
    for (const { name } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      this.#signal.throwIfAborted()
      if (this.files.length + this.blocked.length >= this.#quota.files)
        refuse('too-large', `expected at most ${MOST.files} files in the outbox, found more`)
      const path = [...within, name]
      const reason = nameProblem(name) ?? (await this.#entry(folder, path, level))
      if (reason) this.blocked.push({ path: path.join('/'), reason })
    }
  }

  async #entry(folder: OpenedPath, path: readonly string[], level: number): Promise<BlockReason | undefined> {
    const found = await openReal(this.#tree, folder.path === '.' ? path.at(-1)! : `${folder.path}/${path.at(-1)}`)
    // It was there a moment ago.
    if (found === 'missing') return undefined
    if (found === 'link') return 'link'
    try {
      if (found.stats.isDirectory()) await this.folder(found, path, level + 1)
      else return await this.file(found, path)
    } finally {
      await found.close()
    }
    return undefined
  }

  /** Copies a file; why not, where it is blocked. */
  async file(found: OpenedPath, path: readonly string[]): Promise<BlockReason | undefined> {
    if (!found.stats.isFile()) return 'link'
    if (found.stats.size > MOST.fileBytes) return 'too-large'
    await using from = await openFile(found, path.join('/') || this.#name)
    const target = join(this.#place, ...path)
    await mkdir(dirname(target), { recursive: true })
    const [hashes, scan] = [new PieceHashes(), new TextScan(this.#masker)]
    await using to = await open(target, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644)
    let size = 0
    for await (const piece of filePieces(from)) {
      this.#signal.throwIfAborted()
      size += piece.length
      if (size > MOST.fileBytes) break
      if (size > this.#quota.bytes)
        refuse('too-large', `expected at most ${MOST.bytes} bytes in the outbox, found more`)
      scan.push(piece)
      if (scan.found) break
      hashes.push(piece)
      await to.writeFile(piece).catch((error: unknown) => Promise.reject(writeFailure(error)))
    }
    scan.end()
    if (scan.found || size > MOST.fileBytes) {
      await rm(target)
      return scan.found ? 'credential-content' : 'too-large'
    }
    this.#quota.bytes -= size
    this.files.push({ path: [this.#name, ...path].join('/'), ...hashes.end(), identity: await diskIdentityOf(to) })
    return undefined
  }
}
