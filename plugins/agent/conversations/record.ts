import type { Count, Millis } from '../../../sdk/types.js'
import type { MessageId } from '../turn/input.js'
import type {
  Card,
  CardReply,
  Location,
  RunId,
  ToolCategory,
  ToolContent,
  ToolStatus,
  TurnNote,
} from '../turn/frames/frames.js'

export interface ToolCard {
  id: string
  name: string
  category: ToolCategory
  status: ToolStatus
  target?: string
  locations?: Location[]
  content?: ToolContent[]
  /** A subagent's own calls. */
  children?: ToolCard[]
  thinking?: string
}
export interface AnsweredCard {
  card: Card
  reply?: CardReply
  by?: string
}
/** One row of the record. `index` is its position. */
export interface TranscriptMessage {
  index: Count
  role: 'user' | 'assistant' | 'notice'
  text: string
  run?: RunId
  sentAt?: Millis
  by?: string
  messageId?: MessageId
  errand?: string
  attachments?: string[]
  notes?: TurnNote[]
  checkpointId?: string
  thinking?: string
  tools?: ToolCard[]
  cards?: AnsweredCard[]
  placed?: boolean
}
export interface TranscriptPage {
  messages: TranscriptMessage[]
  sessionId?: string
  total: Count
}
