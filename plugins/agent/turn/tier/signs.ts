import type { Conversation } from '../../contract.js'
import type { RunMessage } from '../run-entry.js'

/** What a turn shows of its difficulty before anything is asked: 0 (nothing) to 1, and which signs there were. */
export interface TurnSigns {
  readonly score: number
  readonly rules: readonly string[]
}

const LONG = 4_000
const LENGTHY = 1_500
const MANY_FILES = 4
/** Words of work that needs thought. */
const WORK = /\b(?:re-?factor|re-?write|re-?design|design|architect|migrat|debug|investigat|diagnos|root cause)/i
const FAULTS = /\b(?:race|deadlock|concurren|leak|optimi[sz]|performance|security|vulnerab|why (?:does|is|do|are))/i
const EFFORTS = new Set(['high', 'xhigh', 'max'])

/** The signs of difficulty in a message and its conversation. */
export const signsOf = (
  { input }: Pick<RunMessage, 'input'>,
  { failure, lastEnd, conflicts }: Pick<Conversation, 'failure' | 'lastEnd' | 'conflicts'>,
  { effort, thinking }: { readonly effort?: string | undefined; readonly thinking?: boolean | undefined },
): TurnSigns => {
  const { prompt, attachments = [], mentions = [], errand, permissionMode } = input
  const files = attachments.length + mentions.length
  const signs: readonly (readonly [rule: string, weight: number, holds: boolean])[] = [
    ['errand', 1, errand !== undefined],
    ['plan', 0.5, permissionMode === 'plan'],
    ['effort', 0.5, thinking === true || EFFORTS.has(effort ?? '')],
    ['open-failure', 0.5, failure !== undefined || lastEnd === 'failed' || (conflicts?.length ?? 0) > 0],
    ['long', prompt.length > LONG ? 0.5 : 0.25, prompt.length > LENGTHY],
    ['files', files > MANY_FILES ? 0.5 : 0.15, files > 0],
    ['hard-words', 0.3, WORK.test(prompt) || FAULTS.test(prompt)],
  ]
  const found = signs.filter(([, , holds]) => holds)
  return {
    score: Math.min(1, Math.round(found.reduce((sum, [, weight]) => sum + weight, 0) * 100) / 100),
    rules: found.map(([rule]) => rule),
  }
}
