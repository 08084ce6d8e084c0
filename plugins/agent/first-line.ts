/** Code units beyond a cut that decide whether a character goes on there. */
const BEYOND = 64

const characters = new Intl.Segmenter('en')

/** The first line of a text, of at most so many code units, and cut between two characters as people see them. */
export const firstLineOf = (text: string, most: number): string => {
  const line = text.trim().split('\n', 1)[0]!
  const cut = characters.segment(line.slice(0, most + BEYOND)).containing(most)?.index
  // A single character may be longer than the line.
  return line
    .slice(0, cut || most)
    .toWellFormed()
    .trim()
}
