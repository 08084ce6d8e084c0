import type { AnsweredCard, ToolCard, TranscriptMessage } from '../../../agent/contract.js'
import type { CardRow, RunRow, ToolRow } from './row-kinds.js'

const toolRowOf = (key: string, { children = [], content = [], thinking, ...tool }: ToolCard): ToolRow => ({
  ...{ type: 'tool', name: tool.name, category: tool.category, status: tool.status, key: `${key} ${tool.id}`, content },
  ...(tool.target !== undefined && { target: tool.target }),
  children: [
    ...(thinking ? [{ type: 'thinking', key: `${key} ${tool.id} thinking`, text: thinking } as const] : []),
    ...children.map(child => toolRowOf(key, child)),
  ],
})

const cardRowOf = (key: string, { card, reply, by }: AnsweredCard): CardRow => ({
  ...{ type: 'card', key: `${key} ${card.requestId}`, card, open: false, events: [] },
  ...(reply && { reply }),
  ...(by && { by }),
})

/** The rows of one message of the record. */
export const rowsOfMessage = (message: TranscriptMessage): RunRow[] => {
  const { index, role, text, by, sentAt, attachments, notes, checkpointId, thinking, tools = [], cards = [] } = message
  const key = `r${index}`
  if (role === 'user')
    return [
      {
        ...{ type: 'user', key, text, index },
        ...(by && { by }),
        ...(sentAt !== undefined && { sentAt }),
        ...(attachments && { attachments }),
        ...(checkpointId !== undefined && { checkpoint: true }),
      },
      ...(notes?.length
        ? [
            {
              type: 'line',
              key: `${key} notes`,
              level: 'quiet',
              text: `The sandbox added ${notes.length} notes.`,
              details: notes,
            } as const,
          ]
        : []),
    ]
  if (role === 'notice') return [{ type: 'line', key, level: 'info', text }]
  return [
    ...(thinking ? [{ type: 'thinking', key: `${key} thinking`, text: thinking } as const] : []),
    ...(text ? [{ type: 'prose', key, text, settled: true, ...(message.placed && { placed: true }) } as const] : []),
    ...tools.map(tool => toolRowOf(key, tool)),
    ...cards.map(card => cardRowOf(key, card)),
  ]
}
