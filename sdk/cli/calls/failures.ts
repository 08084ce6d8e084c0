import type { CliFailure } from '../../cli-table.js'
import { oneLine } from '../terminal/text.js'
import { CommandFailure, EXIT, type Terminal } from '../verb.js'
import { answerEntries, fieldOf, sentence } from './answer.js'
import { groupsOf, tableOf } from './tables.js'

/** The fields that say of any call that it failed; the table of a group adds those of its own calls. */
export const FAILURES: readonly CliFailure[] = [
  { field: 'ok', is: [false] },
  { field: 'error' },
  { field: 'failed' },
  { field: 'reachable', is: [false] },
]

/** Where an answer says why, the first that is there. */
const REASONS: readonly string[] = ['reason', 'detail', 'problem', 'message', 'error.message', 'error']
/** What names the entry of a list that failed. */
const NAMES: readonly string[] = ['id', 'path', 'repo', 'key', 'name']

/** What an answer says that failed. */
export interface FailedAnswer {
  readonly code: number
  /** Absent: the answer gives no reason. */
  readonly why?: string
}

/** The fields that say that a call failed. Reading shows what is there, so a read never fails by its answer. */
export const failuresOf = async (
  terminal: Pick<Terminal, 'root'>,
  [group, call]: readonly [group: string | undefined, call: string],
): Promise<readonly CliFailure[]> => {
  if (call.startsWith('GET ')) return []
  const tables = await Promise.all(
    (group === undefined ? groupsOf(terminal) : [group]).map(each => tableOf(terminal, each)),
  )
  return [...tables.flatMap(table => table?.failures?.[call] ?? []), ...FAILURES]
}

/** Whether an answer, or an event of a stream, says that its call failed, and why. */
export const failedOf = (answer: unknown, failures: readonly CliFailure[], self: string): FailedAnswer | undefined => {
  const shown = { now: Date.now(), self }
  for (const { field, is, text, refused } of failures) {
    const [last = '', ...path] = field.split('.').toReversed()
    const said = answerEntries(answer, path.toReversed()).flatMap(entry => {
      const value = entry[last]
      if (is ? !is.includes(value as string) : !saysSo(value)) return []
      if (text !== undefined) return sentence(text, entry, shown)
      // Each entry of a list of failures says why itself.
      return Array.isArray(value)
        ? answerEntries(value, []).map(each => reasonOf(each, true))
        : reasonOf(entry, path.length > 0)
    })
    const why = [...new Set(said.filter(each => each !== ''))].map(oneLine).join('; ')
    if (said.length > 0) return { code: refused ? EXIT.refused : EXIT.failed, ...(why && { why }) }
  }
  return undefined
}

/** Ends a command as a failure if the answer of its call says so; `done` says what was not done. */
export const assertDone = (failed: FailedAnswer | undefined, done?: string): void => {
  if (failed) throw new CommandFailure(failed.code, [done?.trim(), failed.why].filter(Boolean).join(': ') || SILENT)
}

const SILENT = 'the call failed, and its answer does not say why'

const saysSo = (value: unknown): boolean =>
  value === false || (typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : isText(value))

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

const reasonOf = (entry: unknown, named: boolean): string => {
  const textOf = (fields: readonly string[]) => fields.map(field => fieldOf(entry, field)).find(isText)
  return [named ? textOf(NAMES) : undefined, textOf(REASONS)].filter(Boolean).join(': ')
}
