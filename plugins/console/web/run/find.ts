import type { RunRow } from './rows.js'

/** Everything that a row says. */
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

/** The places of the rows that hold the words, in order; letter case does not count. */
export const findRows = (rows: readonly RunRow[], words: string): number[] => {
  const sought = words.trim().toLocaleLowerCase()
  if (!sought) return []
  return rows.flatMap((row, at) => (wordsOfRow(row).toLocaleLowerCase().includes(sought) ? [at] : []))
}
