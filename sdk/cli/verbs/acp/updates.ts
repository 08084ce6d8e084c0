import type { ContentBlock, SessionNotification, ToolCallContent, ToolCallLocation } from '@agentclientprotocol/sdk'
import type { Frame, TodoItem, ToolCard, ToolContent } from '../../../../plugins/agent/contract.js'
import { plain } from '../../terminal/text.js'
import { editorPath } from './daemons.js'

/** A change that is sent to the editor. */
export type SessionChange = SessionNotification['update']

/** Gives a picture of a conversation as content; undefined: it is not there any more, or too large. */
export type PictureOf = (path: string) => Promise<ContentBlock>

/** What an editor says that it can show. */
export interface Shows {
  readonly notices: boolean
  readonly compactions: boolean
}

/** A paragraph of the agent. */
export const agentWords = (text: string, messageId?: string): SessionChange => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text },
  ...(messageId !== undefined && { messageId }),
})

/** Something said about a turn: a notice where the editor shows them, else a thought. */
export const noticeUpdates = (shows: Shows, severity: 'info' | 'warning', text: string): SessionChange[] => {
  if (shows.notices) return [{ sessionUpdate: 'notice', severity, title: text }]
  return severity === 'info'
    ? []
    : [{ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: `${text}\n` } }]
}

/** The title of a call. */
const toolTitleOf = (name: string, target: string | undefined): string => plain(target ? `${name} ${target}` : name)

/** Converts the results of calls for an editor that has the workspace at `root`. */
const toolContentOf = (content: readonly ToolContent[], root: string, picture: PictureOf): Promise<ToolCallContent[]> =>
  Promise.all(
    content.map(async (part): Promise<ToolCallContent> => {
      if (part.type === 'text') return { type: 'content', content: { type: 'text', text: part.text } }
      if (part.type === 'image') return { type: 'content', content: await picture(part.path) }
      const { path, oldText, newText } = part
      return { type: 'diff', path: editorPath(root, path), newText, ...(oldText !== undefined && { oldText }) }
    }),
  )

/** The places of a call on the editor's machine. */
const locationsOf = (
  places: readonly { readonly path: string; readonly line?: number }[],
  root: string,
): ToolCallLocation[] =>
  places.map(({ path, line }) => ({ path: editorPath(root, path), ...(line !== undefined && { line }) }))

/** A call, as a frame or the record shows it. */
type ShownCall = Pick<ToolCard, 'name' | 'target' | 'category' | 'status' | 'content' | 'locations'>

/** Tells an editor of a call; `parent` is the call whose subagent made it. */
export const toolCallChange = async (
  { name, target, category, status, content, locations }: ShownCall,
  toolCallId: string,
  parent: string | undefined,
  root: string,
  picture: PictureOf,
): Promise<SessionChange> => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title: toolTitleOf(name, target),
  kind: category,
  status,
  ...(content && { content: await toolContentOf(content, root, picture) }),
  ...(locations && { locations: locationsOf(locations, root) }),
  ...(parent !== undefined && { _meta: { parentToolCallId: parent } }),
})

/** A list of what is to do, as a plan of the protocol. */
export const todoPlanOf = (items: readonly TodoItem[]): SessionChange => ({
  sessionUpdate: 'plan',
  entries: items.map(({ content, status }) => ({ content, status, priority: 'medium' as const })),
})

/** Where a run is shown. */
export interface RunView {
  readonly run: string
  readonly root: string
  readonly shows: Shows
  readonly picture: PictureOf
}

/** Converts the frames of one run; cards are asked elsewhere. */
export class RunUpdates {
  readonly #view: RunView
  /** The calls that have not ended, by the name of their tool, for the cards that ask about them. */
  readonly #open = new Map<string, string>()
  readonly #titles = new Map<string, { name: string; target: string | undefined }>()
  #message = 0
  #context: { used: number; size: number } | undefined
  #cost: number

  constructor(view: RunView, costUsd: number) {
    this.#view = view
    this.#cost = costUsd
  }

  /** The id that the editor knows a call by: ids of a run repeat in the next one. */
  idOf(id: string): string {
    return `${this.#view.run}/${id}`
  }

  /** The open call of a tool, if there is no other one: a card names only the tool. */
  openCall(tool: string): string | undefined {
    const [call, another] = [...this.#open].filter(([, name]) => name === tool)
    return another ? undefined : call?.[0]
  }

  /** What the editor shows of a frame; an empty list for one that it cannot show. */
  async of(frame: Frame): Promise<SessionChange[]> {
    const { root, shows, picture } = this.#view
    switch (frame.kind) {
      case 'delta':
        return frame.parentToolUseId === undefined ? [agentWords(frame.text, `${this.#view.run}-${this.#message}`)] : []
      case 'text_end':
        if (frame.parentToolUseId === undefined) this.#message++
        return []
      case 'thinking':
        return frame.parentToolUseId === undefined
          ? [{ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: frame.text } }]
          : []
      case 'tool_call': {
        const { name, target, status, parentToolUseId } = frame
        const toolCallId = this.idOf(frame.id)
        this.#message++
        this.#titles.set(frame.id, { name, target })
        this.#settle(toolCallId, status, name)
        const parent = parentToolUseId === undefined ? undefined : this.idOf(parentToolUseId)
        return [await toolCallChange(frame, toolCallId, parent, root, picture)]
      }
      case 'tool_call_update': {
        const { status, content, locations, category } = frame
        const toolCallId = this.idOf(frame.id)
        const known = this.#titles.get(frame.id)
        const title = { name: frame.name ?? known?.name ?? '', target: frame.target ?? known?.target }
        this.#titles.set(frame.id, title)
        if (status) this.#settle(toolCallId, status, title.name)
        return [
          {
            sessionUpdate: 'tool_call_update',
            toolCallId,
            ...((frame.name ?? frame.target) !== undefined && { title: toolTitleOf(title.name, title.target) }),
            ...(category && { kind: category }),
            ...(status && { status }),
            ...(content && { content: await toolContentOf(content, root, picture) }),
            ...(locations && { locations: locationsOf(locations, root) }),
          },
        ]
      }
      case 'todos':
        return [todoPlanOf(frame.items)]
      case 'mode':
        return [{ sessionUpdate: 'current_mode_update', currentModeId: frame.mode }]
      case 'context_usage':
        this.#context = { used: frame.tokens, size: frame.contextWindow }
        return this.#usage()
      case 'usage':
        this.#cost += frame.costUsd ?? 0
        return frame.costUsd ? this.#usage() : []
      case 'compact':
        return shows.compactions
          ? [
              {
                sessionUpdate: 'compaction_update',
                compactionId: this.idOf(`compact-${++this.#message}`),
                status: 'completed',
                ...(frame.detail && { summary: [{ type: 'text', text: frame.detail }] }),
              },
            ]
          : noticeUpdates(shows, 'warning', `The context was compacted. ${frame.detail ?? ''}`.trim())
      case 'notice':
        return noticeUpdates(shows, frame.level, frame.text)
      case 'provider_retry':
        return noticeUpdates(shows, 'info', frame.message ?? 'The request to the provider is repeated.')
      case 'landed':
        return noticeUpdates(shows, 'info', frame.landed ? 'The work is in the workspace.' : 'The work did not land.')
      case 'init':
        return frame.unenforced?.length
          ? noticeUpdates(
              shows,
              'warning',
              `The program of this turn does not enforce: ${frame.unenforced.join(', ')}.`,
            )
          : []
      default:
        return []
    }
  }

  #settle(id: string, status: string, name: string): void {
    if (status === 'completed' || status === 'failed') this.#open.delete(id)
    else this.#open.set(id, name)
  }

  #usage(): SessionChange[] {
    if (!this.#context) return []
    const cost = this.#cost > 0 && { cost: { amount: this.#cost, currency: 'USD' } }
    return [{ sessionUpdate: 'usage_update', ...this.#context, ...cost }]
  }
}
