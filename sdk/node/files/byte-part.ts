import { refuse } from '../../refusal.js'

/** A part of something: its first byte and its last. */
export interface BytePart {
  readonly first: number
  readonly last: number
}

/**
 * The part that a header asks for; undefined: all of it (RFC 9110, section 14.2: what is not understood, and several
 * parts at once, may be answered so).
 */
export const partOf = (range: string | undefined, size: number): BytePart | undefined => {
  const [, first = '', last = ''] = /^bytes=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(range ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined
  const part =
    first === ''
      ? { first: Math.max(0, size - Number(last)), last: size - 1 }
      : { first: Number(first), last: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
  if (part.first >= size || (first === '' && Number(last) === 0)) {
    refuse('range', `expected a part of ${size} bytes, found ${range!.slice(0, 80)}`, { fields: { sizeBytes: size } })
  }
  return part
}
