import type { TextChunk } from './index-store.js'
import type { SourceSymbol } from './parsed-source.js'

const LINES = 40
const HEADING = /^(?:#{1,6}\s+|=+\s+)(.+)$/
/** A line of a comment, in most languages; prose has none. */
const COMMENT = /^\s*(?:\/\/+|\/\*+|\*|#+|--|;+|"""|''')\s*(.*)$/
const MOST_LINE = 2000

/** A name with its parts: `sweepTree` is `sweep Tree`. */
export const nameParts = (name: string): string =>
  name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu}+)(\p{Lu}\p{Ll})/gu, '$1 $2')
    .replace(/[_$]+/g, ' ')

const COMPOUND = /[\p{L}_$][\p{L}\p{N}_$]*\p{Ll}\p{Lu}[\p{L}\p{N}_$]*/gu

/** The chunks of a text: 40 lines each, titled by their definitions or headings. */
export const chunksOf = (text: string, symbols: readonly SourceSymbol[]): TextChunk[] => {
  const lines = text.split('\n')
  const chunks: TextChunk[] = []
  for (let from = 0; from < lines.length; from += LINES) {
    const part = lines.slice(from, from + LINES).map(line => line.slice(0, MOST_LINE))
    const body = part.join('\n')
    if (body.trim() === '') continue
    const names = symbols.filter(({ line }) => line > from && line <= from + LINES).map(({ name }) => name)
    const headings = part.flatMap(line => HEADING.exec(line)?.[1] ?? [])
    const notes = part.flatMap(line => COMMENT.exec(line)?.[1] ?? [])
    const compounds = [...new Set(body.match(COMPOUND) ?? [])].map(nameParts)
    chunks.push({
      line: from + 1,
      lines: part.length,
      head: [...names, ...names.map(nameParts), ...headings].join(' '),
      notes: notes.join(' '),
      body: `${body}\n${compounds.join(' ')}`,
    })
  }
  return chunks
}
