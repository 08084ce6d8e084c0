import type { ModelAnswer } from './answer.js'
import type { NewEntry, SessionEntry } from './session.js'

/** Said to a model whose text reached the limit of tokens for one answer. */
export const CONTINUE =
  'Your answer was cut off: it reached the limit of tokens for one answer. Go on exactly where it ended, without '
  + 'repeating anything and without a word about this.'
/** Said to a model that answered nothing. */
export const NOTHING_SAID =
  'Your last answer was empty. Go on with the task; if it is done, say in a sentence what you did.'
/** The result of a call whose arguments the limit cut off. */
export const CUT_CALL =
  'this call was not run: your answer reached the limit of tokens for one answer in the middle of its arguments. Make '
  + 'it in smaller parts, for example write a long file in several steps'
/** So often in a row an answer is continued. */
const MOST_CONTINUED = 8

const hasCalls = ({ parts }: Pick<ModelAnswer, 'parts'>): boolean => parts.some(({ kind }) => kind === 'call')
const hasText = ({ parts }: Pick<ModelAnswer, 'parts'>): boolean => parts.some(({ kind }) => kind === 'text')

/** Whether an answer is a text that the limit of tokens cut off, which goes on in the next one. */
export const endsInText = (answer: Pick<ModelAnswer, 'parts' | 'finish'>): boolean =>
  answer.finish === 'length' && answer.parts.at(-1)?.kind === 'text' && !hasCalls(answer)

/** What the sandbox says to an answer that ends before its time; undefined: nothing. */
export const followUp = (answer: ModelAnswer, before: readonly SessionEntry[], run: string): NewEntry | undefined => {
  if (answer.finish === 'refused' || hasCalls(answer)) return undefined
  const said = (text: string): NewEntry => ({ kind: 'words', run, text, by: 'sandbox' })
  // Thoughts that fill an answer would fill, and cost, the next ones too.
  const most = endsInText(answer) ? MOST_CONTINUED : 1
  if (answer.finish === 'length') return timesSaid(before, CONTINUE) < most ? said(CONTINUE) : undefined
  return hasText(answer) || timesSaid(before, NOTHING_SAID) > 0 ? undefined : said(NOTHING_SAID)
}

/** How often the newest entries say something, with nothing but answers between. */
const timesSaid = (entries: readonly SessionEntry[], text: string): number => {
  let times = 0
  for (const entry of entries.toReversed()) {
    if (entry.kind === 'answer') continue
    if (entry.kind !== 'words' || entry.by !== 'sandbox' || entry.text !== text) break
    times++
  }
  return times
}

/** What people are told of the end of an answer that stays as it is; undefined: nothing. */
export const remarkOn = (answer: ModelAnswer): string | undefined => {
  if (hasCalls(answer)) return undefined
  if (answer.finish === 'length')
    return 'the answer ends here because the model reached its limit of tokens for one answer'
  return hasText(answer) ? undefined : 'the model sent an empty answer'
}

/** The parts of an answer at its limit: the last call is not made if its arguments were cut off. */
export const uncutParts = ({ parts, finish }: Pick<ModelAnswer, 'parts' | 'finish'>): ModelAnswer['parts'] => {
  const last = parts.at(-1)
  if (finish !== 'length' || last?.kind !== 'call') return parts
  if (last.input !== undefined && Object.keys(last.input).length > 0) return parts
  const { input: _input, ...call } = last
  return [...parts.slice(0, -1), { ...call, malformed: CUT_CALL }]
}
