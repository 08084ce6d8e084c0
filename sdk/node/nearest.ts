/** The known name that a mistyped one is likely to mean; undefined where none is near. */
export const nearest = (name: string, known: readonly string[]): string | undefined => {
  if (name.length > MOST) return undefined
  const near = known.map(one => [one, distance(name.toLowerCase(), one.toLowerCase())] as const)
  const [found, far] = near.reduce((best, one) => (one[1] < best[1] ? one : best), ['', Infinity])
  return far <= Math.max(2, Math.floor(name.length / 3)) ? found : undefined
}

const MOST = 200

/** How many letters must be put in, taken out or exchanged (Levenshtein). */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1))
    }
    row = next
  }
  return row.at(-1)!
}
