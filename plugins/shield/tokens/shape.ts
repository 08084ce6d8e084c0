const MOST = 40

/** The first character of a value, and the shape of the rest: what it is like, without what it is. */
export const shapeOf = (value: string): string => {
  const characters = [...value]
  const rest = characters
    .slice(1, MOST)
    .map(char => (/\p{N}/u.test(char) ? '9' : /\p{L}/u.test(char) ? '*' : /\s/.test(char) ? ' ' : char))
  return `${characters[0] ?? ''}${rest.join('')}${characters.length > MOST ? '…' : ''}`
}
