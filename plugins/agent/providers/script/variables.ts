/** What a script knows: the values behind `$answer`, `$exit` and the others. */
export interface Variables {
  readonly answer: string
  readonly exit: string
  readonly out: string
  readonly words: string
  readonly n: string
  readonly run: string
  readonly conversation: string
}

const NAME = /\$(?:\$|(answer|exit|out|words|n|run|conversation)(?![A-Za-z0-9_]))/g
const MOST = 4 * 1024 * 1024

/** The text with its variables replaced and `$$` made `$`; undefined when it would grow beyond 4 Mi characters. */
export const expand = (text: string, variables: Variables): string | undefined => {
  if (!text.includes('$')) return text
  const parts: string[] = []
  let [at, length] = [0, 0]
  for (const found of text.matchAll(NAME)) {
    const value = found[1] === undefined ? '$' : variables[found[1] as keyof Variables]
    parts.push(text.slice(at, found.index), value)
    length += found.index - at + value.length
    if (length > MOST) return undefined
    at = found.index + found[0].length
  }
  parts.push(text.slice(at))
  return parts.join('')
}

/** A text that `expand` leaves as it is. */
export const literal = (text: string): string => text.replaceAll('$', '$$$$')
