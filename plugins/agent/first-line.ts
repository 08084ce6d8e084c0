/** Code units beyond a cut that decide whether a character goes on there. */
const BEYOND = 64

/** Made at its first use: it loads tables. */
let characters: Intl.Segmenter | undefined

/** The first line of a text, of at most so many code units, and cut between two characters as people see them. */
export const firstLineOf = (text: string, most: number): string => {
  const line = text.trim().split('\n', 1)[0]!
  if (line.length <= most) return line.toWellFormed().trim()
  characters ??= new Intl.Segmenter('en')
  const cut = characters.segment(line.slice(0, most + BEYOND)).containing(most)?.index
  // A single character may be longer than the line.
  return line
    .slice(0, cut || most)
    .toWellFormed()
    .trim()
}
