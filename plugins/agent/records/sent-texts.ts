import type { SentTexts } from './contract.js'
import type { SessionEntry } from '../providers/native/session.js'
import type { ToolCard, TranscriptMessage } from '../conversations/record.js'

type Sent = Pick<SentTexts, 'requests' | 'texts'>

/** What a session sent to its model: words, earlier answers, and results of tools. */
export const sentInSession = (entries: readonly SessionEntry[]): Sent => {
  const texts: SentTexts['texts'] = []
  let requests = 0
  for (const entry of entries) {
    if (entry.kind !== 'answer') texts.push({ text: entry.text, before: requests })
    else {
      requests++
      for (const part of entry.parts) {
        const text = part.kind === 'call' ? JSON.stringify(part.input ?? {}) : part.text
        texts.push({ text, before: requests })
      }
    }
  }
  return { requests, texts }
}

/** What a record says was sent, where no session is kept. */
export const sentInRecord = (rows: readonly TranscriptMessage[]): Sent => {
  const texts: SentTexts['texts'] = []
  let requests = 0
  for (const { role, text, tools = [] } of rows) {
    if (role === 'assistant') requests++
    if (text) texts.push({ text, before: requests })
    for (const result of tools.flatMap(resultsOf)) texts.push({ text: result, before: requests })
  }
  return { requests, texts }
}

const resultsOf = ({ content = [], children = [] }: ToolCard): string[] => [
  ...content.flatMap(part => (part.type === 'text' ? [part.text] : [])),
  ...children.flatMap(resultsOf),
]
