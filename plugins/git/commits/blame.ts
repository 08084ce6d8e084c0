import { refuse } from '../../../sdk/index.js'
import { isBinary, sideOnDisk, type FileSide } from '../objects/sides.js'
import type { Objects } from '../objects/objects.js'
import { isLink, isModule } from '../objects/tree-entries.js'
import { pathFor, type OpenRepo } from '../repositories/repositories.js'
import { unquoted } from './quoted-name.js'
import type { Blame, BlameHunk } from './contract.js'

const MOST_BYTES = 5 * 1024 * 1024
const MOST_LINES = 5000
const NEWLINE = 10
const NOT_COMMITTED = /^0+$/

/** A request for the blame of a file. */
export interface BlameQuery {
  readonly path: string
  readonly ref?: string | undefined
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly ignoreWhitespace?: boolean | undefined
}

interface Facts {
  author: string
  email: string
  at: number
  subject: string
  from?: string
}

const countLines = (bytes: Buffer): number => {
  let lines = bytes.length > 0 && bytes.at(-1) !== NEWLINE ? 1 : 0
  for (const byte of bytes) if (byte === NEWLINE) lines += 1
  return lines
}

const contentOf = async (
  objects: Objects,
  { git, repo }: OpenRepo,
  path: string,
  commit: string | undefined,
): Promise<Buffer> => {
  const absent = (): never => refuse('not-found', `${repo} has no tracked file ${path} there`)
  let side: FileSide | undefined
  if (commit === undefined) {
    const { text } = await git.look(['ls-files', '-s', '-z', '--', path])
    if (!text.startsWith('100')) return absent()
    side = await sideOnDisk(git.place.dir, path, MOST_BYTES)
  } else {
    const entry = await objects.entry(git, commit, path)
    if (!entry || entry.type !== 'blob' || isLink(entry) || isModule(entry)) return absent()
    side = (await objects.content(git, entry, MOST_BYTES)).bytes ?? 'large'
  }
  if (side === undefined) return absent()
  if (side === 'large') return refuse('too-large', `${path} is larger than ${MOST_BYTES / 1024 / 1024} MiB`)
  return isBinary(side) ? refuse('unprocessable', `${path} is binary: it has no lines`) : side
}

/** Parses `git blame --porcelain`, which describes a commit only at its first line. */
const hunksIn = (text: string, path: string): BlameHunk[] => {
  const facts = new Map<string, Facts>()
  const hunks: BlameHunk[] = []
  let now: Facts = { author: '', email: '', at: 0, subject: '' }
  let hunk: BlameHunk | undefined
  for (const line of text.split('\n')) {
    const header = /^([0-9a-f]{40,64}) (\d+) (\d+)(?: (\d+))?$/.exec(line)
    if (header) {
      const [, sha = '', fromLine, start, count] = header
      const known = facts.get(sha)
      now = known ?? { author: '', email: '', at: 0, subject: '' }
      facts.set(sha, now)
      if (count === undefined) continue
      hunk = { start: Number(start), count: Number(count), fromLine: Number(fromLine), ...blank }
      if (!NOT_COMMITTED.test(sha)) hunk.sha = sha
      hunks.push(hunk)
    } else if (line.startsWith('author ')) now.author = line.slice(7)
    else if (line.startsWith('author-mail ')) now.email = line.slice(12).replace(/^<|>$/g, '')
    else if (line.startsWith('author-time ')) now.at = Number(line.slice(12)) * 1000
    else if (line.startsWith('summary ')) now.subject = line.slice(8)
    else if (line.startsWith('filename ')) now.from = unquoted(line.slice(9))
    else if (line.startsWith('\t') && hunk && hunk.author === '' && hunk.subject === '') {
      const { from, ...rest } = now
      Object.assign(hunk, rest, from !== undefined && from !== path && { from })
    }
  }
  return hunks
}

const blank = { author: '', email: '', at: 0, subject: '' }

/** Finds who changed each line of a file last. */
export const blameOf = async (objects: Objects, opened: OpenRepo, query: BlameQuery): Promise<Blame> => {
  const { git, sees } = opened
  const path = await pathFor(opened, query.path)
  const { ref, start = 1, ignoreWhitespace = false } = query
  const commit = ref === undefined ? undefined : await objects.commit(git, ref)
  const lines = countLines(await contentOf(objects, opened, path, commit))
  const answer = { path, ...(ref !== undefined && { ref }), lines }
  if (lines === 0 && start === 1) return { ...answer, hunks: [] }
  if (start > lines) refuse('unprocessable', `${path} has ${lines} lines, found start ${start}`)
  const end = Math.min(query.end ?? lines, start + MOST_LINES - 1, lines)
  if (end < start)
    refuse('invalid', `end: expected a line from ${start} on, found ${end}`, {
      errors: [{ path: 'end', expected: 'not less than start', value: String(end) }],
    })
  const head = commit ?? (await objects.head(git))
  if (head === undefined) return refuse('not-found', `${git.place.repo} has no commit yet`)
  const args = [
    'blame',
    '--porcelain',
    '--encoding=UTF-8',
    ...(ignoreWhitespace ? ['-w'] : []),
    `-L${start},${end}`,
    ...(commit === undefined ? [] : [commit]),
    '--',
    path,
  ]
  const { text } = commit === undefined ? await git.look(args) : await git.read(args)
  const hunks = hunksIn(text, path)
  return {
    ...answer,
    hunks: hunks.map(({ from, ...hunk }) => (from !== undefined && sees(from) ? { ...hunk, from } : hunk)),
  }
}
