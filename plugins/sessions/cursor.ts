import { refuse } from '../../sdk/index.js'
import type { RecordPlace } from '../agent/contract.js'

/** A place in the list as one word. */
export const cursorOf = ({ updatedAt, id }: RecordPlace): string => `${updatedAt}.${id}`

/** The place that a word names; refuses one that no page gave. */
export const placeOfCursor = (cursor: string): RecordPlace => {
  const [, updatedAt, id] = /^(\d{1,16})\.([a-zA-Z0-9][a-zA-Z0-9_-]{0,63})$/.exec(cursor) ?? []
  if (updatedAt === undefined || id === undefined)
    return refuse('invalid', `before: expected the next of a page, found ${JSON.stringify(cursor)}`, {
      errors: [{ path: 'before', expected: 'the next of a page' }],
    })
  return { updatedAt: Number(updatedAt), id }
}
