import type { ErrorCode, PermissionMode, QuestionOption, TodoItem, ToolCategory } from '../frames.js'

/** A line that starts helpers or waits for them; what a helper is told is its own script, whose variables are its own too. */
export type HelperAction =
  | { readonly verb: 'helper'; readonly description: string; readonly prompt: string; readonly background: boolean }
  | { readonly verb: 'join' }

/** A line that becomes the call of a sandbox tool. Texts still hold their variables. */
export type ToolAction =
  | { readonly verb: 'run'; readonly text: string }
  | { readonly verb: 'list' | 'delete' | 'image'; readonly path: string }
  | { readonly verb: 'read'; readonly path: string; readonly from?: number; readonly to?: number }
  | { readonly verb: 'write' | 'append'; readonly path: string; readonly content: string }
  | { readonly verb: 'edit'; readonly path: string; readonly old: string; readonly new: string }
  | { readonly verb: 'move'; readonly from: string; readonly to: string }
  | { readonly verb: 'todo'; readonly items: readonly TodoItem[] }
  | HelperAction

/** A line that asks something of a person. */
export type CardAction =
  | {
    readonly verb: 'ask'
    readonly question: string
    readonly several: boolean
    readonly options: readonly QuestionOption[]
  }
  | { readonly verb: 'plan'; readonly text: string }
  | { readonly verb: 'permit'; readonly tool: string; readonly sentence: string }

/** A line that needs neither a tool nor a person. */
export type PlainAction =
  | { readonly verb: 'say' | 'think' | 'expect' | 'fail'; readonly text: string }
  | { readonly verb: 'wait'; readonly ms: number }
  | { readonly verb: 'wait words'; readonly ms?: number }
  | { readonly verb: 'mode'; readonly mode: PermissionMode }
  | { readonly verb: 'usage'; readonly input: number; readonly output: number; readonly costUsd?: number }
  | { readonly verb: 'refuse'; readonly code: ErrorCode; readonly text: string }
  | { readonly verb: 'outage'; readonly times: number }
  | { readonly verb: 'stop' }
  | { readonly verb: 'absent'; readonly name: AbsentVerb; readonly text: string }

/** What one line of a script does. */
export type Action = PlainAction | CardAction | ToolAction

/** One command of a script: where it stands, what it does, and how often when it says so. */
export interface Command {
  readonly line: number
  readonly action: Action
  readonly times?: number
}

/** The tool call that stands for a verb, and what the verb needs that this sandbox lacks. */
export interface Absence {
  readonly tool: string
  readonly category: ToolCategory
  readonly needs: string
}

/** Verbs of the language that need a part of the sandbox which is not there. */
export const ABSENT = {
  search: { tool: 'Search', category: 'search', needs: 'the search index' },
  code: { tool: 'Code', category: 'execute', needs: 'the code runner' },
  fetch: { tool: 'Fetch', category: 'fetch', needs: 'web access for agents' },
  browse: { tool: 'Browser', category: 'execute', needs: 'a browser for agents' },
  handover: { tool: 'Handover', category: 'other', needs: 'a browser or terminal to hand over' },
  offer: { tool: 'Offer', category: 'other', needs: 'offers of services, capabilities and payments' },
  need: { tool: 'Need', category: 'other', needs: 'the list of needs' },
  propose: { tool: 'Propose', category: 'other', needs: 'approvals' },
  verdict: { tool: 'Verdict', category: 'other', needs: 'a loop or workflow that asked for a document' },
  context: { tool: 'Context', category: 'other', needs: 'a count of the model\'s context' },
  compact: { tool: 'Compact', category: 'other', needs: 'a model whose context can be compacted' },
  limit: { tool: 'Limit', category: 'other', needs: 'provider accounts with limits' },
  fast: { tool: 'Fast', category: 'other', needs: 'a provider with a fast mode' },
  retry: { tool: 'Retry', category: 'other', needs: 'a model server that can be asked again' },
  die: { tool: 'Die', category: 'other', needs: 'an agent program of its own that could end' },
} as const satisfies { readonly [verb: string]: Absence }

/** A verb that opens a tool call, closes it as failed with a reason, and lets the script go on. */
export type AbsentVerb = keyof typeof ABSENT
