import type { Host, Reach } from '../../../sdk/index.js'
import { isTurnWritable } from '../../../sdk/node/programs/turn-writable.js'
import { listEnv, needProgram } from '../../../sdk/node/programs/run.js'
import { runWalled, wallKind } from '../../../sdk/node/wall/wall.js'
import { MatchReader, type TextMatch } from './match-reader.js'

/** A text search. */
export interface TextQuery {
  readonly query: string
  readonly literal: boolean
  readonly word: boolean
  readonly caseSensitive: boolean
}

/** A search in some files. */
export interface RipgrepSearch extends TextQuery {
  /** The tree that is searched: the workspace, or a private copy, which is shown in its place. */
  readonly root: string
  readonly reach: Reach
  /** Paths from its root. */
  readonly files: readonly string[]
  readonly signal: AbortSignal
  readonly found: (match: TextMatch) => void
}

/** How a search in some files ended. */
export interface RipgrepEnd {
  /** Lines that were too long to be read. */
  readonly dropped: number
}

/** The pattern is not a regular expression; the message is that of ripgrep. */
export class NoRegex extends Error {}

const FLAGS = ['--json', '--no-config', '--no-messages', '--no-ignore', '--hidden', '--no-follow', '--threads=2']
const MOST_OUTPUT = 64 * 1024
const NO_MATCH = 1

/** The program bundled with the daemon, unless a turn could have written it; otherwise that of the machine. */
export const ripgrepProgram = async (): Promise<string> => {
  const own = await import('@vscode/ripgrep').then(
    ({ rgPath }) => rgPath,
    () => undefined,
  )
  return own !== undefined && !isTurnWritable(own) ? own : needProgram('rg')
}

/**
 * Searches some files, behind the wall without network: a link that replaces a file meanwhile cannot lead outside.
 *
 * @throws NoRegex, or the reason of the signal.
 */
export const ripgrep = async (
  { workspace, data, hidden }: Host['place'],
  program: string,
  { query, literal, word, caseSensitive, root, reach, files, signal, found }: RipgrepSearch,
): Promise<RipgrepEnd> => {
  const reader = new MatchReader(found)
  const args = [
    ...FLAGS,
    caseSensitive ? '--case-sensitive' : '--ignore-case',
    ...(literal ? ['--fixed-strings'] : []),
    ...(word ? ['--word-regexp'] : []),
    `--regexp=${query}`,
    '--',
    ...files.map(path => `./${path}`),
  ]
  const enforced = (await wallKind()) !== 'none'
  const place = enforced ? workspace : root
  const { code, stderr } = await runWalled(
    {
      workspace: place,
      data,
      hide: hidden,
      ...(enforced && root !== workspace && { shown: [{ from: root, to: workspace }] }),
      cwd: place,
      env: listEnv(),
      sealed: true,
      offline: true,
      ...(reach && { only: reach }),
    },
    program,
    args,
    {
      signal,
      priority: 'own',
      maxBytes: MOST_OUTPUT,
      onOutput: (piece, from) => {
        if (from === 'stdout') reader.add(piece)
      },
    },
  )
  if (/^rg: regex parse error|^regex parse error|error: /m.test(stderr)) throw new NoRegex(stderr.trim())
  if (code > NO_MATCH && stderr !== '') throw new Error(`ripgrep ended with ${code}: ${stderr.trim().slice(0, 300)}`)
  return { dropped: reader.dropped }
}
