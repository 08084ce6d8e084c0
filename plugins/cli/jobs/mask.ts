import type { CliLine } from '../contract.js'

const LEAST = 4
const MASK = '***'

/** The parts of a secret that must not be seen: the whole, each of its lines, and what stands behind a name in one. */
const partsOf = (value: string): string[] =>
  [value, ...value.split(/\r?\n/)].flatMap(part => [part, /^[A-Za-z_]\w*=(.*)$/s.exec(part)?.[1] ?? part])

/** Puts `***` in the place of secrets in a text, also where it is JSON. */
export const maskOf = (values: readonly string[]): ((text: string) => string) => {
  const parts = values.flatMap(partsOf).flatMap(part => [part, JSON.stringify(part).slice(1, -1)])
  const ordered = [...new Set(parts)].filter(({ length }) => length >= LEAST).sort((a, b) => b.length - a.length)
  return text => ordered.reduce((masked, part) => masked.replaceAll(part, MASK), text)
}

/** Fields whose words are the program's own, by the kind of their line: a secret such as `error` hides none of them. */
const OWN_WORDS: { readonly [kind: string]: readonly string[] } = {
  start: ['command'],
  exit: ['command'],
  log: ['level'],
  node: ['phase', 'state', 'action', 'type'],
}

const maskedValue = (value: unknown, mask: (text: string) => string): unknown => {
  if (typeof value === 'string') return mask(value)
  if (Array.isArray(value)) return value.map(each => maskedValue(each, mask))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [mask(key), maskedValue(each, mask)]))
}

/** A line of the program without the secrets in its texts; what it is stays readable. */
export const maskedLine = ({ kind, ...line }: CliLine, mask: (text: string) => string): CliLine => {
  const own = OWN_WORDS[kind] ?? []
  const fields = Object.entries(line).map(([key, value]) => [key, own.includes(key) ? value : maskedValue(value, mask)])
  return { ...(Object.fromEntries(fields) as object), kind }
}
