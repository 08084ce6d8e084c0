import { limitTo, type OpenRepo } from '../repositories/repositories.js'
import { checkedPath, isShownPath } from '../repositories/names.js'

const NUL = 0
const MOST = 200_000
const MOST_RECORD = 65_536

/** Collects a limited number of tracked paths after a given one, in git's order. */
class PathPage {
  readonly #after: Buffer | undefined
  readonly #most: number
  readonly #shown: (path: string) => boolean
  #open: Buffer = Buffer.alloc(0)
  #last: string | undefined
  #paths: string[] = []

  constructor(after: string | undefined, most: number, shown: (path: string) => boolean) {
    this.#after = after === undefined ? undefined : Buffer.from(after)
    this.#most = most
    this.#shown = shown
  }

  take(piece: Buffer): void {
    let from = 0
    for (let end = piece.indexOf(NUL); end >= 0; end = piece.indexOf(NUL, from)) {
      this.#path(Buffer.concat([this.#open, piece.subarray(from, end)]))
      this.#open = Buffer.alloc(0)
      from = end + 1
    }
    this.#open = Buffer.concat([this.#open, piece.subarray(from)])
    if (this.#open.length > MOST_RECORD) throw new Error(`git ls-files wrote more than ${MOST_RECORD} bytes as a path`)
  }

  get page(): { files: string[]; hasMore: boolean } {
    return { files: this.#paths.slice(0, this.#most), hasMore: this.#paths.length > this.#most }
  }

  #path(bytes: Buffer): void {
    const path = bytes.toString()
    // A name that is not UTF-8 is found again by its shown form.
    if (this.#after && path === this.#after.toString()) this.#paths = []
    else if (path !== this.#last && this.#paths.length <= this.#most && this.#comes(bytes) && this.#shown(path))
      this.#paths.push(path)
    this.#last = path
  }

  #comes(bytes: Buffer): boolean {
    return !this.#after || bytes.compare(this.#after) > 0
  }
}

/** One page of the tracked paths that the caller sees. */
export const trackedPaths = async (
  opened: OpenRepo,
  { prefix, limit = 100_000, after }: { prefix?: string; limit?: number; after?: string },
): Promise<{ files: string[]; hasMore: boolean }> => {
  const { repo, git, sees } = opened
  const below = prefix === undefined ? undefined : checkedPath(repo, prefix)
  const within = (path: string) => below === undefined || path === below || path.startsWith(`${below}/`)
  const shown = (path: string) => within(path) && isShownPath(repo, path) && sees(path)
  const page = new PathPage(after, Math.min(limit, MOST), shown)
  let failure: unknown
  await git.look(['ls-files', '-z', '--cached', ...(below === undefined ? limitTo(opened) : ['--', below])], {
    to: piece => {
      try {
        if (failure === undefined) page.take(piece)
      } catch (error) {
        failure = error
      }
    },
  })
  if (failure !== undefined) throw failure
  return page.page
}
