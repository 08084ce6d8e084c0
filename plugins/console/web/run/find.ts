import type { RunRow } from './row-kinds.js'

/** The whole text of a row. */
export const wordsOfRow = (row: RunRow): string => {
  switch (row.type) {
    case 'tool':
      return [
        row.name,
        row.target ?? '',
        ...row.content.map(one => (one.type === 'text' ? one.text : one.path)),
        ...row.children.map(wordsOfRow),
      ].join('\n')
    case 'card':
      return JSON.stringify(row.card)
    default:
      return row.text
  }
}

/** The indexes of the rows that contain the text, in order, ignoring case. */
export const findRows = (rows: readonly RunRow[], words: string): number[] => {
  const sought = words.trim().toLocaleLowerCase()
  if (!sought) return []
  return rows.flatMap((row, at) => (wordsOfRow(row).toLocaleLowerCase().includes(sought) ? [at] : []))
}
