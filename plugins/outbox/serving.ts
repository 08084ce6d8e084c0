import type { FileHandle } from 'node:fs/promises'
import { refuse, type Context, type HttpFacts } from '../../sdk/index.js'
import type { GivenBytes } from '../../sdk/contract.js'
import { Budget } from '../../sdk/node/access/budget.js'
import { hashOf, holds } from '../../sdk/node/access/secret.js'
import { attachmentNamed, mediaTypeOf } from '../../sdk/node/files/media-type.js'
import { servedPublicFile } from '../../sdk/node/pages/served-file.js'
import { ByteRate } from './byte-rate.js'
import type { BlockReason } from './contract.js'
import type { Outbox } from './outbox.js'
import { publishedPart } from './pieces.js'
import type { StoredEntry, StoredFile } from './stored-entry.js'
import type { Verdicts } from './verdicts.js'

const REQUESTS = 600
const BYTES_A_SECOND = 200 * 1024 ** 2
/** How often a file is looked for again that was replaced while it was opened. */
const ATTEMPTS = 5
/** What is published is of an opaque origin, unless it has a host of its own. */
const SANDBOXED = 'sandbox allow-scripts allow-forms allow-popups allow-downloads'

/** What serving stands on. */
export interface ServingDeps {
  readonly outbox: Outbox
  readonly verdicts: Verdicts
  readonly isOn: boolean
  /** A guard begins to refuse a file, or refuses it no more. */
  readonly judged: (entry: StoredEntry, file: StoredFile, reason: BlockReason | undefined) => void
}

const unserved = (): never => refuse('not-found', 'nothing is served there')

/** Serves published files to everybody who has their address. */
export class OutboxServing {
  readonly #deps: ServingDeps
  readonly #budget = new Budget(REQUESTS)
  readonly #rate = new ByteRate(BYTES_A_SECOND)

  constructor(deps: ServingDeps) {
    this.#deps = deps
  }

  /** The file at a path, or where the folder at it is. */
  async answer(slot: string, path: string, { http, signal }: Context): Promise<GivenBytes> {
    this.#budget.spend(http?.address ?? '')
    this.#rate.assertFree()
    const { outbox, isOn } = this.#deps
    if (!holds([hashOf(outbox.book.slot)], hashOf(slot)) || !isOn) unserved()
    const isFolder = path === '' || path.endsWith('/')
    const file = await this.#open(isFolder ? `${path}index.html` : path)
    if (file) return this.#sent(file, http, signal)
    // A folder without a slash at its end, so that the addresses in its page are right.
    const index = isFolder ? undefined : await this.#open(`${path}/index.html`)
    if (!index) return unserved()
    await index.handle.close()
    const location = `${encodeURIComponent(path.split('/').at(-1)!)}/`
    return {
      'content-type': 'text/plain; charset=utf-8',
      status: 301,
      headers: { location, 'cache-control': 'no-cache', 'x-robots-tag': 'noindex' },
      data: '',
    }
  }

  /** Opens a published file that every guard lets out. */
  async #open(path: string) {
    const { outbox, verdicts, judged } = this.#deps
    const [name = ''] = path.split('/')
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const entry = await outbox.settled(name)
      const file = entry?.files.find(each => each.path === path)
      if (!entry || !file) return undefined
      const verdict = await verdicts.of(entry, file)
      if (typeof verdict === 'object' && 'handle' in verdict) {
        judged(entry, file, undefined)
        return { ...verdict, file }
      }
      if (!outbox.isCurrent(entry)) continue
      if (verdict !== 'missing') judged(entry, file, verdict.reason)
      return undefined
    }
    return undefined
  }

  async #sent(
    { file, handle }: { readonly file: StoredFile; readonly handle: FileHandle },
    http: HttpFacts | undefined,
    signal: AbortSignal,
  ): Promise<GivenBytes> {
    const { outbox } = this.#deps
    const type = await mediaTypeOf(file.path)
    const rate = this.#rate
    const isSvg = type?.startsWith('image/svg')
    const policy = [...(http?.publicHost ? [] : [SANDBOXED]), ...(isSvg ? ["script-src 'none'"] : [])].join('; ')
    return servedPublicFile(
      {
        type: type ?? 'application/octet-stream',
        size: file.size,
        tag: file.sha256.slice(0, 22),
        headers: {
          'content-security-policy': policy,
          // A page of an opaque origin is another origin to its own pictures.
          'cross-origin-resource-policy': 'cross-origin',
          ...(type === undefined && { 'content-disposition': attachmentNamed(file.path.split('/').at(-1)!) }),
        },
        close: () => handle.close(),
        read: async function* (part) {
          outbox.book.countOpened(file)
          for await (const piece of publishedPart(handle, file, part)) {
            if (outbox.isWithdrawn(file)) throw new Error('a file was withdrawn while it was sent')
            await rate.take(piece.length)
            yield piece
          }
        },
      },
      http,
      signal,
    )
  }
}
