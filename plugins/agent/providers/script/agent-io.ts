import type {
  AgentContext,
  SessionUpdate,
  RequestPermissionRequest,
  ToolCallContent,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'
import { Refusal, ignored } from '../../../../sdk/index.js'
import type { CardDraft, ToolResult, TurnIo } from '../adapter.js'
import type { CardReply, Frame, ToolContent } from '../../turn/frames/frames.js'
import { change } from '../../tools/content.js'
import { done, failed, type Tool, type ToolContext } from '../../tools/tool.js'
import { NO_TOOL_PARTS } from '../../tools/tool-parts.js'
import { tools } from '../../tools/tools.js'
import { stamp } from '../../tools/tree.js'

const ABSENT = -32002
const WINDOW = 200_000
const ASKS = new Set(['edit', 'delete', 'move', 'execute'])
const OPTIONS = [
  { optionId: 'once', name: 'Allow', kind: 'allow_once' as const },
  { optionId: 'always', name: 'Always allow', kind: 'allow_always' as const },
  { optionId: 'deny', name: 'Do not allow', kind: 'reject_once' as const },
]

type Update = (update: SessionUpdate) => Promise<void>

/** What one prompt of a session works with. */
export interface AgentSession {
  readonly id: string
  /** The folder the client named, which is the tree. */
  readonly cwd: string
  readonly client: AgentContext
  readonly signal: AbortSignal
  /** How often it was prompted, which makes the ids of calls its own. */
  readonly round: number
  /** Puts the plan to the client and resolves when it is approved. */
  plan(text: string): Promise<CardReply | undefined>
}

/**
 * The place of the sandbox for the interpreter when it runs as an agent program: every effect goes over the protocol.
 */
export const agentIo = ({ id: sessionId, cwd, client, signal, round, plan }: AgentSession): TurnIo => {
  const update: Update = update => client.notify('session/update', { sessionId, update })
  const callOf = (id: string) => `${round}-${id}`
  const seen = (path: string) => join(cwd, path)

  const allowed = async (toolCall: ToolCallUpdate): Promise<'once' | 'always' | 'deny'> => {
    const asked: RequestPermissionRequest = { sessionId, toolCall, options: OPTIONS }
    const { outcome } = await client.request('session/request_permission', asked)
    return outcome.outcome === 'selected' && (outcome.optionId === 'once' || outcome.optionId === 'always')
      ? outcome.optionId
      : 'deny'
  }

  const file = async (path: string): Promise<string | undefined> => {
    try {
      return (await client.request('fs/read_text_file', { sessionId, path: seen(path) })).content
    } catch (error) {
      if ((error as { code?: number }).code === ABSENT) return undefined
      throw error
    }
  }

  /** Replaces a file through the client; `next` is given what it holds. */
  const rewrite = async (path: string, next: (before?: string) => string): Promise<ToolResult> => {
    const before = await file(path)
    const after = next(before)
    await client.request('fs/write_text_file', { sessionId, path: seen(path), content: after })
    return done(
      `wrote ${path}`,
      change(path, before === undefined ? undefined : Buffer.from(before), Buffer.from(after)),
    )
  }

  const edited = (path: string, old: string, next: string, before: string | undefined): string => {
    if (before === undefined) throw new Sentence(`nothing in the workspace is named ${path}`)
    const parts = before.split(old)
    if (parts.length !== 2) throw new Sentence(`${path} holds the text to replace ${parts.length - 1} times, not once`)
    return parts.join(next)
  }

  const command = async (words: string): Promise<ToolResult> => {
    const { terminalId } = await client.request('terminal/create', { sessionId, command: words, cwd })
    const kill = () =>
      void client.request('terminal/kill', { sessionId, terminalId }).catch(ignored('the command has ended'))
    if (signal.aborted) kill()
    signal.addEventListener('abort', kill, { once: true })
    try {
      const { exitCode } = await client.request('terminal/wait_for_exit', { sessionId, terminalId })
      const { output } = await client.request('terminal/output', { sessionId, terminalId })
      const exit = exitCode ?? 137
      const text = exit === 0 ? output : `${output}${output === '' || output.endsWith('\n') ? '' : '\n'}[exit ${exit}]`
      return { ok: exit === 0, exit, text, content: [{ type: 'text', text }] }
    } finally {
      signal.removeEventListener('abort', kill)
      await client.request('terminal/release', { sessionId, terminalId }).catch(ignored('the command has ended'))
    }
  }

  const never = () => Promise.reject(new Error('that goes to the client'))
  /** What this process does by itself, in the tree it was started in. */
  const here: ToolContext = {
    root: cwd,
    signal,
    shell: never,
    code: never,
    reach: never,
    references: { command: never, text: never },
    ...NO_TOOL_PARTS,
    call: '',
    person: { attends: false, ask: never, approved: () => {} },
    subagents: { delegate: never, join: never },
  }

  const perform = async (
    name: string,
    input: { readonly [field: string]: unknown },
    tool: Tool,
  ): Promise<ToolResult> => {
    const {
      path = '',
      content = '',
      old = '',
      new: next = '',
      command: words = '',
      offset,
      limit,
    } = input as { [field: string]: string }
    switch (name) {
      case 'Shell':
        return command(words)
      case 'Write':
        return rewrite(path, () => content)
      case 'Append':
        return rewrite(path, before => (before ?? '') + content)
      case 'Edit':
        return rewrite(path, before => edited(path, old, next, before))
      case 'Read': {
        const local = await tool.run(input, here)
        if (!local.ok || local.content.some(({ type }) => type === 'image')) return local
        const { content } = await client.request('fs/read_text_file', {
          sessionId,
          path: seen(path),
          ...(offset && { line: Number(offset) }),
          ...(limit && { limit: Number(limit) }),
        })
        return done(content)
      }
      default:
        return tool.run(input, here)
    }
  }

  const shown = (part: ToolContent): ToolCallContent => {
    if (part.type === 'diff')
      return {
        type: 'diff',
        path: seen(part.path),
        newText: part.newText,
        ...(part.oldText !== undefined && { oldText: part.oldText }),
      }
    if (part.type === 'text') return { type: 'content', content: part }
    return {
      type: 'content',
      content: {
        type: 'resource_link',
        name: part.path,
        uri: pathToFileURL(seen(part.path)).href,
        mimeType: 'image/*',
      },
    }
  }

  const tool = async (name: string, input: object, id: string): Promise<ToolResult> => {
    const toolCallId = callOf(id)
    const known = tools[name]!
    const end = async (result: ToolResult): Promise<ToolResult> => {
      await update({
        sessionUpdate: 'tool_call_update',
        toolCallId,
        status: result.ok ? 'completed' : 'failed',
        content: result.content.map(shown),
      })
      return result
    }
    try {
      const checked = known.check(input)
      const { target = '', locations = [] } = known.describe(checked)
      const call = {
        toolCallId,
        name,
        title: target || name,
        kind: known.category,
        rawInput: input,
        locations: locations.map(({ path, line }) => ({ path: seen(path), ...(line && { line }) })),
      }
      await update({ sessionUpdate: 'tool_call', status: 'pending', ...call })
      if (ASKS.has(known.category) && (await allowed(call)) === 'deny') return await end(failed('it was not allowed'))
      await update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' })
      return await end(await perform(name, checked as { [field: string]: unknown }, known))
    } catch (error) {
      const told =
        error instanceof Sentence || error instanceof Refusal || (error as { name?: string }).name === 'RequestError'
      if (!told) throw error
      return end(failed((error as Error).message))
    }
  }

  const raise = async (draft: CardDraft): Promise<CardReply | undefined> => {
    if (draft.kind === 'plan') return plan(draft.text)
    if (draft.kind !== 'permission') return undefined
    const title = `${draft.toolName}: ${draft.description ?? ''}`
    return {
      kind: 'permission',
      requestId: 'client',
      decision: await allowed({ toolCallId: callOf('permit'), title, kind: 'other' }),
    }
  }

  const paused = (ms = 0): Promise<void> => delay(ms, undefined, { signal }).catch(ignored('the wait was cut short'))

  return {
    signal,
    takeWords: () => [],
    waitWords: async ms => void (await paused(ms)),
    gap: async ms => {
      if (ms) await paused(ms)
      return false
    },
    raise,
    tool,
    helper: never,
    permit: () => Promise.reject(new Error('an agent program asks by tool')),
    offered: async () => [],
    expose: () => Promise.reject(new Error('no programs here')),
    walled: () => Promise.reject(new Error('an agent program starts no programs')),
    shared: async () => undefined,
    stamp: path => stamp({ root: cwd }, path),
    // What a program of its own saves goes with it; the client has its record.
    state: async () => {},
    mode: () => {},
    title: () => {},
  }
}

/** What a person reads of a call that failed. */
class Sentence extends Error {}

/** The updates that tell the client of a frame. */
export const updatesOf = (
  frame: Frame,
  round: number,
  block: number,
  context?: { used: number; size: number },
): SessionUpdate[] => {
  switch (frame.kind) {
    case 'delta':
      return [
        {
          sessionUpdate: 'agent_message_chunk',
          messageId: `${round}-${block}`,
          content: { type: 'text', text: frame.text },
        },
      ]
    case 'thinking':
      return [{ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: frame.text } }]
    case 'todos':
      return [
        {
          sessionUpdate: 'plan',
          entries: frame.items.map(({ content, status }) => ({ content, status, priority: 'medium' })),
        },
      ]
    case 'commands':
      return [
        {
          sessionUpdate: 'available_commands_update',
          availableCommands: frame.items.map(({ name, description, hint }) => ({
            name,
            description,
            ...(hint && { input: { hint } }),
          })),
        },
      ]
    case 'context_usage':
      return [{ sessionUpdate: 'usage_update', used: frame.tokens, size: frame.contextWindow }]
    case 'usage': {
      const { inputTokens = 0, outputTokens = 0, costUsd = 0 } = frame
      const counted = { used: Math.min(inputTokens + outputTokens, WINDOW), size: WINDOW }
      return [{ sessionUpdate: 'usage_update', ...(context ?? counted), cost: { amount: costUsd, currency: 'USD' } }]
    }
    default:
      return []
  }
}
