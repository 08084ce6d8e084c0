const MOST_OUTPUT = 2_000

interface NotebookCell {
  readonly cell_type?: string
  readonly source?: string | readonly string[]
  readonly outputs?: readonly {
    readonly text?: string | readonly string[]
    readonly data?: { readonly [type: string]: string | readonly string[] }
    readonly ename?: string
    readonly evalue?: string
  }[]
}
interface Notebook {
  readonly cells?: readonly NotebookCell[]
  readonly metadata?: { readonly language_info?: { readonly name?: string }; readonly title?: string }
}

const joined = (text: unknown): string => (Array.isArray(text) ? text.join('') : typeof text === 'string' ? text : '')

const fenced = (text: string, language: string): string => {
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)))
  return `${fence}${language}\n${text.replace(/\n$/, '')}\n${fence}`
}

/** A notebook as markdown: its cells in order, without the counts of runs; texts of outputs are cut. */
export const notebookText = (json: string): { markdown: string; parts: number; notes: string[] } => {
  const { cells, metadata } = JSON.parse(json) as Notebook
  if (!Array.isArray(cells)) throw new Error('it has no cells')
  const language = metadata?.language_info?.name ?? ''
  let [images, cut] = [0, 0]
  const outputOf = (cell: NotebookCell): string[] =>
    (Array.isArray(cell.outputs) ? cell.outputs : []).flatMap(({ text, data, ename, evalue }) => {
      if (data && Object.keys(data).some(type => type.startsWith('image/'))) images++
      const said = joined(text) || joined(data?.['text/plain']) || (ename ? `${ename}: ${evalue ?? ''}` : '')
      if (said.length > MOST_OUTPUT) cut++
      return said === '' ? [] : [fenced(said.slice(0, MOST_OUTPUT).toWellFormed(), 'output')]
    })
  const blocks = (cells as readonly NotebookCell[]).flatMap(cell => {
    const source = joined(cell.source)
    if (cell.cell_type !== 'code') return [source]
    return [fenced(source, language), ...outputOf(cell)]
  })
  return {
    markdown: blocks.filter(block => block.trim() !== '').join('\n\n'),
    parts: cells.length,
    notes: [
      ...(images > 0 ? [`${images} ${images === 1 ? 'image' : 'images'} in outputs`] : []),
      ...(cut > 0 ? [`${cut} ${cut === 1 ? 'output' : 'outputs'} cut at ${MOST_OUTPUT} characters`] : []),
    ],
  }
}
