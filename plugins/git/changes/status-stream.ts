import type { GitChange } from '../records.js'

/** The output of `git status --porcelain=v2 --branch -z`, with a limited number of rows. */
export interface StatusRows {
  readonly head?: string
  readonly branch?: string
  readonly upstream?: string
  readonly ahead: number
  readonly behind: number
  readonly conflicted: GitChange[]
  readonly staged: GitChange[]
  readonly unstaged: GitChange[]
  /** What is in the index, by path: modes and ids. */
  readonly index: ReadonlyMap<string, string>
  /** The number of rows of each kind, kept or not. */
  readonly counts: { readonly conflicted: number; readonly staged: number; readonly unstaged: number }
}

const NAMES: { readonly [letter: string]: GitChange['status'] } = {
  A: 'added',
  C: 'added',
  M: 'modified',
  D: 'deleted',
  R: 'renamed',
  T: 'type-changed',
}
const NUL = 0
const MOST_RECORD = 65_536
const MOST_CONFLICTED = 10_000

/** Reads git's records as they arrive; keeps at most `most` of each kind. */
export class StatusStream {
  readonly #most: number
  readonly #shown: (path: string) => boolean
  readonly #encoding: 'utf8' | 'latin1'
  #open: Buffer = Buffer.alloc(0)
  /** A rename whose first name is the next record. */
  #renamed: { path: string; xy: string; index: string } | undefined
  readonly #index = new Map<string, string>()
  readonly #headers = new Map<string, string>()
  readonly #rows = { conflicted: [] as GitChange[], staged: [] as GitChange[], unstaged: [] as GitChange[] }
  readonly #counts = { conflicted: 0, staged: 0, unstaged: 0 }

  /** @param shown Whether a path is listed for the caller. */
  constructor(most: number, shown: (path: string) => boolean, encoding: 'utf8' | 'latin1' = 'utf8') {
    this.#most = most
    this.#shown = shown
    this.#encoding = encoding
  }

  take(piece: Buffer): void {
    let from = 0
    for (let end = piece.indexOf(NUL); end >= 0; end = piece.indexOf(NUL, from)) {
      this.#record(Buffer.concat([this.#open, piece.subarray(from, end)]).toString(this.#encoding))
      this.#open = Buffer.alloc(0)
      from = end + 1
    }
    this.#open = Buffer.concat([this.#open, piece.subarray(from)])
    if (this.#open.length > MOST_RECORD) throw new Error(`git status wrote a record of more than ${MOST_RECORD} bytes`)
  }

  get rows(): StatusRows {
    const [head, branch, upstream] = ['branch.oid', 'branch.head', 'branch.upstream'].map(name =>
      this.#headers.get(name),
    )
    const [, ahead = '0', behind = '0'] = /^\+(\d+) -(\d+)$/.exec(this.#headers.get('branch.ab') ?? '') ?? []
    return {
      ...(head !== undefined && head !== '(initial)' && { head }),
      ...(branch !== undefined && branch !== '(detached)' && { branch }),
      ...(upstream !== undefined && { upstream }),
      ahead: Number(ahead),
      behind: Number(behind),
      ...this.#rows,
      index: this.#index,
      counts: this.#counts,
    }
  }

  #record(record: string): void {
    if (this.#renamed) {
      const { path, xy, index } = this.#renamed
      this.#renamed = undefined
      return this.#both(path, { xy, index }, record)
    }
    const kind = record[0]
    if (kind === '#') {
      const [, name = '', value = ''] = /^# (\S+) (.*)$/s.exec(record) ?? []
      this.#headers.set(name, value)
    } else if (kind === '1')
      this.#both(fieldsAfter(record, 8), { xy: record.slice(2, 4), index: indexIn(record, [4, 7]) })
    else if (kind === '2')
      this.#renamed = { path: fieldsAfter(record, 9), xy: record.slice(2, 4), index: indexIn(record, [4, 7]) }
    else if (kind === 'u') {
      const index = indexIn(record, [3, 4, 5, 7, 8, 9])
      this.#add('conflicted', { path: fieldsAfter(record, 10), status: 'conflicted' }, index)
    }
    // A folder here is a separate repository.
    else if (kind === '?' && !record.endsWith('/')) this.#add('unstaged', { path: record.slice(2), status: 'added' })
  }

  #both(path: string, { xy, index }: { readonly xy: string; readonly index: string }, from?: string): void {
    for (const [side, letter] of [
      ['staged', xy[0]!],
      ['unstaged', xy[1]!],
    ] as const) {
      const status = NAMES[letter]
      if (!status) continue
      const earlier = letter === 'R' && from !== undefined && this.#shown(from) ? from : undefined
      const renamed = status === 'renamed' && earlier === undefined
      // If only one of both names is visible, the rename is an added or a deleted file.
      if (status === 'renamed' && !this.#shown(path) && from !== undefined)
        this.#add(side, { path: from, status: 'deleted' }, index)
      else {
        const change = { path, status: renamed ? ('added' as const) : status }
        this.#add(side, { ...change, ...(earlier !== undefined && { from: earlier }) }, index)
      }
    }
  }

  #add(kind: 'conflicted' | 'staged' | 'unstaged', change: GitChange, index = ''): void {
    if (!this.#shown(change.path)) return
    this.#counts[kind] += 1
    const most = kind === 'conflicted' ? MOST_CONFLICTED : this.#most
    if (this.#rows[kind].length >= most) return
    this.#rows[kind].push(change)
    if (index !== '') this.#index.set(change.path, index)
  }
}

/** Some fields of a record, which names no path before them. */
const indexIn = (record: string, fields: readonly number[]): string => {
  const all = record.split(' ', 10)
  return fields.map(field => all[field]).join(' ')
}

const fieldsAfter = (record: string, fields: number): string => {
  let at = 0
  for (let field = 0; field < fields; field++) at = record.indexOf(' ', at) + 1
  return record.slice(at)
}
