import type { ContentBlock } from '@agentclientprotocol/sdk'
import type { AnsweredCard, Frame, ToolCard, TranscriptMessage } from '../../../../plugins/agent/contract.js'
import type { Client } from '../../../client.js'
import { Refusal } from '../../../refusal.js'
import { answerWords } from '../../follow/card-lines.js'
import { cardHeading, cardMarkdown } from './ask-editor.js'
import type { ConversationFiles } from './pictures.js'
import { agentWords, type SessionChange, toolCallChange } from './updates.js'

const RECORD_PAGE = 200

/** The rows of a record, oldest first. */
export async function* recordRows(client: Client, id: string): AsyncGenerator<TranscriptMessage, void> {
  let total = 1
  for (let from = 0; from < total; from += RECORD_PAGE) {
    const asked = { id, limit: RECORD_PAGE, before: from + RECORD_PAGE }
    const page = await client.call('GET /agents/{id}/transcript', asked)
    yield* page.messages.filter(({ index }) => index >= from)
    total = page.total
  }
}

/** Where a record is shown. */
export interface HistoryView {
  readonly root: string
  readonly files: ConversationFiles
}

/** A message of a person, as the editor shows it. */
export const personSaid = async (
  text: string,
  attachments: readonly string[],
  files: ConversationFiles,
): Promise<SessionChange[]> => {
  const blocks: ContentBlock[] = [
    ...(text ? [{ type: 'text' as const, text }] : []),
    ...(await Promise.all(attachments.map(files.picture))),
  ]
  return blocks.map(content => ({ sessionUpdate: 'user_message_chunk', content }))
}

/** The changes that show one row of a record. */
export const changesOfRow = async (row: TranscriptMessage, { root, files }: HistoryView): Promise<SessionChange[]> => {
  if (row.role === 'user') return personSaid(row.text, row.attachments ?? [], files)
  const run = row.run ?? `row-${row.index}`
  const said = row.text ? [agentWords(row.role === 'notice' ? `${row.text}\n` : row.text, `${run}-${row.index}`)] : []
  return [
    ...(row.thinking
      ? [{ sessionUpdate: 'agent_thought_chunk' as const, content: { type: 'text' as const, text: row.thinking } }]
      : []),
    ...(await Promise.all((row.tools ?? []).map(tool => changesOfTool(tool, run, undefined, root, files)))).flat(),
    ...(row.cards ?? []).map(card => changeOfCard(card, run)),
    ...said,
  ]
}

const changesOfTool = async (
  tool: ToolCard,
  run: string,
  parent: string | undefined,
  root: string,
  files: ConversationFiles,
): Promise<SessionChange[]> => {
  const toolCallId = `${run}/${tool.id}`
  const { children = [] } = tool
  return [
    await toolCallChange(tool, toolCallId, parent, root, files.picture),
    ...(await Promise.all(children.map(child => changesOfTool(child, run, toolCallId, root, files)))).flat(),
  ]
}

const changeOfCard = ({ card, reply, by }: AnsweredCard, run: string): SessionChange => {
  const answer = reply ? `${answerWords(reply)}${by === undefined ? '' : ` (${by})`}` : 'nobody answered'
  return {
    sessionUpdate: 'tool_call',
    toolCallId: `${run}/${card.requestId}`,
    title: cardHeading(card),
    kind: card.kind === 'plan' ? 'switch_mode' : 'other',
    status: reply ? 'completed' : 'failed',
    content: [cardMarkdown(card), answer].map(text => ({ type: 'content', content: { type: 'text', text } })),
  }
}

/** The list of what is to do that a run showed last. */
export const lastTodos = async (
  client: Client,
  conversationId: string,
  run: string,
): Promise<Extract<Frame, { kind: 'todos' }> | undefined> => {
  let found: Extract<Frame, { kind: 'todos' }> | undefined
  const enough = new AbortController()
  try {
    const events = await client.call('POST /agent/attach', { conversationId, run }, { signal: enough.signal })
    let known = 0
    for await (const event of events) {
      if (event.kind === 'attached') known = event.seq
      if (event.kind === 'frame' && event.event.kind === 'todos') found = event.event
      if (event.kind === 'end' || (event.kind === 'frame' && event.seq >= known) || known === 0) break
    }
  } catch (error) {
    // The frames of an old run are not kept for ever.
    if (!(error instanceof Refusal)) throw error
  } finally {
    enough.abort()
  }
  return found
}
