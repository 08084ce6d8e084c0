import { createHash } from 'node:crypto'

/** A hash of a JSON value, whatever the order of its keys. */
export const orderedHash = (value: unknown): string => createHash('sha256').update(ordered(value)).digest('hex')

const ordered = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)))
      : part,
  )
