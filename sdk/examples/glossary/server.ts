// Gives agents a tool that looks terms up in a Markdown file of the team, with lines such as `**term**: meaning`.
import type { ExtensionHost } from 'sandbox-daemon/sdk'

const ENTRY = /^[-*]?\s*\*\*(.+?)\*\*\s*[:–-]\s*(.+)$/
const MOST_SUGGESTED = 10

const entriesOf = (text: string): Map<string, string> =>
  new Map(
    text.split('\n').flatMap((line): [string, string][] => {
      const [, term, meaning] = ENTRY.exec(line.trim()) ?? []
      return term === undefined || meaning === undefined ? [] : [[term.toLowerCase(), `${term}: ${meaning}`]]
    }),
  )

export const activate = (host: ExtensionHost): void => {
  host.tools.handle('define', async input => {
    const { file = 'docs/glossary.md' } = await host.settings.get()
    const path = String(file)
    if (!(await host.files.stat(path))) return { text: `there is no glossary: write one into ${path}`, error: true }
    const entries = entriesOf(new TextDecoder().decode(await host.files.read(path)))
    const term = (input as { term: string }).term.trim().toLowerCase()
    const found = entries.get(term)
    if (found !== undefined) return { text: found }
    const similar = [...entries.keys()].filter(key => key.includes(term) || term.includes(key)).slice(0, MOST_SUGGESTED)
    return { text: similar.length > 0 ? `not found; there is: ${similar.join(', ')}` : 'not found', error: true }
  })
}
