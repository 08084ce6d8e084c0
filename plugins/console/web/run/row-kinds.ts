import type { Card, CardReply, ToolCard, ToolContent, ToolStatus } from '../../../agent/contract.js'

interface RowBase {
  readonly key: string
}

/** A message of a person. */
export interface UserRow extends RowBase {
  readonly type: 'user'
  readonly text: string
  readonly by?: string
  readonly sentAt?: number
  readonly attachments?: readonly string[]
  /** Its index in the record, if the conversation can be rewound to before it. */
  readonly index?: number
  readonly checkpoint?: boolean
}
/** A text of the agent; a settled one does not change any more. */
export interface ProseRow extends RowBase {
  readonly type: 'prose'
  readonly text: string
  readonly settled: boolean
  readonly placed?: boolean
}
export interface ThinkingRow extends RowBase {
  readonly type: 'thinking'
  readonly text: string
}
/** One tool call, with its nested calls. */
export interface ToolRow extends RowBase {
  readonly type: 'tool'
  readonly name: string
  readonly category: ToolCard['category']
  readonly status: ToolStatus
  readonly target?: string
  readonly content: readonly ToolContent[]
  readonly children: readonly RunRow[]
  readonly subagent?: { readonly status?: string; readonly about?: string; readonly summary?: string }
}
/** A card, and its outcome. */
export interface CardRow extends RowBase {
  readonly type: 'card'
  readonly card: Card
  readonly open: boolean
  readonly reply?: CardReply
  readonly by?: string
  readonly events: readonly string[]
}
/** One line about the run. */
export interface LineRow extends RowBase {
  readonly type: 'line'
  readonly level: 'quiet' | 'info' | 'warning' | 'error'
  readonly text: string
  readonly details?: readonly { readonly title: string; readonly text: string }[]
}
export type RunRow = UserRow | ProseRow | ThinkingRow | ToolRow | CardRow | LineRow
