import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessView } from '../../sdk/node/access/access-view.js'
import type { OpenedPath } from '../../sdk/node/files/open-path.js'
import type { PublicAddress } from '../../sdk/node/pages/public-address.js'
import { openReal } from '../../sdk/node/files/real-path.js'
import type { BlockReason, PublicFile } from './contract.js'
import { MOST, nameProblem, REASONS } from './guards.js'
import type { Outbox } from './outbox.js'
import { OUTBOX } from './public-folder.js'
import type { StoredEntry, StoredFile } from './stored-entry.js'
import type { Verdicts } from './verdicts.js'

/** The files of `public/` that a list looks at: a turn may put any number there. */
const MOST_SEEN = 50_000

interface SeenFile {
  readonly path: string
  readonly size: number
  readonly modifiedAt: number
  readonly reason?: BlockReason
}

/** The address of an outbox. */
export const outboxUrl = ({ base }: PublicAddress, slot: string): string | undefined =>
  base === undefined ? undefined : `${base}/p/${slot}`

/** The address of a path below it. */
export const urlBelow = (outbox: string | undefined, path: string): string | undefined =>
  outbox === undefined ? undefined : `${outbox}/${path.split('/').map(encodeURIComponent).join('/')}`

/** Every file in the outbox that a caller may see, by path. */
export class OutboxListing {
  readonly #outbox: Outbox
  readonly #verdicts: Verdicts

  constructor(outbox: Outbox, verdicts: Verdicts) {
    this.#outbox = outbox
    this.#verdicts = verdicts
  }

  async page(
    view: AccessView,
    url: string | undefined,
    { limit, after = '' }: { readonly limit: number; readonly after?: string },
  ): Promise<{ files: PublicFile[]; totalBytes: number; next?: string }> {
    const published = new Map<string, { readonly entry: StoredEntry; readonly file: StoredFile }>()
    for (const entry of this.#outbox.book.all) for (const file of entry.files) published.set(file.path, { entry, file })
    const seen: SeenFile[] = []
    for (const file of await this.#seen()) {
      const source = sourceOf(published.get(file.path))
      if (await view.sees(source ?? `${OUTBOX}/${file.path}`)) seen.push(file)
    }
    const left = seen.filter(({ path }) => path > after)
    const shown = left.slice(0, limit)
    const files: PublicFile[] = []
    for (const file of shown) files.push(await this.#shown(file, published.get(file.path), url))
    return {
      files,
      totalBytes: seen.reduce((sum, { size }) => sum + size, 0),
      ...(left.length > shown.length && { next: shown.at(-1)!.path }),
    }
  }

  async #shown(
    { path, size, modifiedAt, reason: seen }: SeenFile,
    known: { readonly entry: StoredEntry; readonly file: StoredFile } | undefined,
    url: string | undefined,
  ): Promise<PublicFile> {
    const reason = known ? ((await this.#reasonOf(known.entry, known.file)) ?? undefined) : (seen ?? 'unlisted')
    const address = reason ? undefined : urlBelow(url, path)
    const source = sourceOf(known)
    return {
      ...{ path, size, modifiedAt },
      ...(address !== undefined && { url: address }),
      ...(reason && { reason, blocked: REASONS[reason] }),
      ...(source !== undefined && { source }),
      ...(known && {
        publishedBy: known.entry.publishedBy,
        publishedAt: known.entry.publishedAt,
        ...(known.entry.expiresAt !== undefined && { expiresAt: known.entry.expiresAt }),
        opened: this.#outbox.book.opened(known.file),
      }),
    }
  }

  async #reasonOf(entry: StoredEntry, file: StoredFile): Promise<BlockReason | undefined> {
    const verdict = await this.#verdicts.of(entry, file)
    if (verdict === 'missing') return 'unlisted'
    if ('reason' in verdict) return verdict.reason
    await verdict.handle.close()
    return undefined
  }

  /** What lies in `public/`, without following a link. */
  async #seen(): Promise<SeenFile[]> {
    const seen: SeenFile[] = []
    const walk = async (folder: OpenedPath, within: readonly string[]): Promise<void> => {
      for (const entry of await readdir(folder.at, { withFileTypes: true })) {
        if (seen.length >= MOST_SEEN) return
        const path = [...within, entry.name]
        if (entry.isDirectory() && path.length <= MOST.levels) {
          const below = await openReal(this.#outbox.tree, [OUTBOX, ...path].join('/'))
          if (typeof below === 'string') continue
          await walk(below, path).finally(() => below.close())
          continue
        }
        const stats = await lstat(join(folder.at, entry.name)).catch(() => undefined)
        if (!stats || stats.isDirectory()) continue
        const reason = path.map(nameProblem).find(Boolean) ?? (stats.isFile() ? undefined : 'link')
        const { size, mtimeMs } = stats
        seen.push({ path: path.join('/'), size, modifiedAt: Math.trunc(mtimeMs), ...(reason && { reason }) })
      }
    }
    const root = await openReal(this.#outbox.tree, OUTBOX)
    if (typeof root === 'string') return []
    try {
      if (root.stats.isDirectory()) await walk(root, [])
    } finally {
      await root.close()
    }
    return seen.sort((a, b) => (a.path < b.path ? -1 : 1))
  }
}

/** The workspace path of a published file. */
const sourceOf = (known: { readonly entry: StoredEntry; readonly file: StoredFile } | undefined): string | undefined =>
  known?.entry.source === undefined ? undefined : known.entry.source + known.file.path.slice(known.entry.name.length)
