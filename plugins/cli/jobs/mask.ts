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
