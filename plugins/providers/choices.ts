import { refuse } from '../../sdk/index.js'
import type { Choice, ChoicePage } from './contract.js'

/** Which of the choices, and how many. */
export interface ChoicesAsked {
  readonly q?: string
  readonly ready?: '1'
  readonly provider?: string
  readonly limit?: number
  readonly after?: string
}

const USUAL = 200
const MOST = 500

/** The last choice of a page: where it stood, and what it was. */
interface Cursor {
  readonly at: number
  readonly provider: string
  readonly model: string
}

/** One page of the choices that match, the ready ones first. */
export const pageOf = (
  all: readonly Choice[],
  { q, ready, provider, limit = USUAL, after }: ChoicesAsked,
): ChoicePage => {
  const words = q?.toLowerCase()
  const matching = all.filter(
    choice =>
      (provider === undefined || choice.provider === provider)
      && (ready === undefined || choice.ready)
      && (words === undefined
        || [choice.model.id, choice.model.label].some(text => text.toLowerCase().includes(words))),
  )
  const sorted = [...matching.filter(choice => choice.ready), ...matching.filter(choice => !choice.ready)]
  const from = after === undefined ? 0 : startAfter(sorted, cursorOf(after))
  const choices = sorted.slice(from, from + Math.min(limit, MOST))
  const last = choices.at(-1)
  const more = last !== undefined && from + choices.length < sorted.length
  return {
    choices,
    total: sorted.length,
    ...(more && {
      cursor: textOfCursor({ at: from + choices.length - 1, provider: last.provider, model: last.model.id }),
    }),
  }
}

/** Where a page begins: after the last choice of the one before, or where that stood when it is gone. */
const startAfter = (sorted: readonly Choice[], { at, provider, model }: Cursor): number => {
  const found = sorted.findIndex(choice => choice.provider === provider && choice.model.id === model)
  return found < 0 ? at : found + 1
}

const textOfCursor = (cursor: Cursor): string => Buffer.from(JSON.stringify(cursor)).toString('base64url')

const cursorOf = (text: string): Cursor => {
  try {
    const { at, provider, model } = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Partial<Cursor>
    if (Number.isInteger(at) && at! >= 0 && typeof provider === 'string' && typeof model === 'string')
      return { at: at!, provider, model }
  } catch {
    // It is refused below.
  }
  return refuse(
    'invalid',
    `after: expected the cursor of an earlier page, found ${JSON.stringify(text.slice(0, 40))}`,
    {
      errors: [{ path: 'after', expected: 'the cursor of an earlier page' }],
    },
  )
}
