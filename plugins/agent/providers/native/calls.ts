import type { OfferedTool, ToolResult, TurnIo, TurnRequest } from '../adapter.js'
import { Replay } from '../script/replay.js'
import { asMeant } from '../../tool-inputs/as-meant.js'
import { todo } from '../../tools/todo.js'
import type { Frame } from '../../turn/frames/frames.js'
import { MAYBE_DONE } from './instructions.js'
import type { CallPart, NewEntry } from './session.js'

/** A running call that may change something, with hashes of its paths from before. */
export interface CallIntent {
  readonly frame: string
  readonly stamps: readonly string[]
}

/** The dependencies of running the calls of an answer. */
export interface CallDeps {
  readonly io: TurnIo
  readonly offered: readonly OfferedTool[]
  /** Stores a result before anything else happens. */
  readonly keep: (entry: NewEntry) => Promise<void>
  /** Stores the intent of a call that may change something, before it is made. */
  readonly intend: (intent: CallIntent) => Promise<void>
  /** The intent that a restart found. */
  readonly intent?: CallIntent
  readonly request: TurnRequest
  /** How many bytes of a result the model reads. */
  readonly most: number
}

const MOST_AT_ONCE = 8
const FILES = new Set<OfferedTool['category']>(['edit', 'delete', 'move'])

/** Runs the calls of an answer: read-only ones up to eight at once, all others one after another. */
export async function* runCalls(calls: readonly CallPart[], deps: CallDeps): AsyncGenerator<Frame, void> {
  const past = new Replay(deps.request.since ?? [])
  for (let at = 0; at < calls.length && !deps.io.signal.aborted;) {
    const reads = readsFrom(calls, at, deps)
    if (reads.length > 0) {
      await Promise.all(reads.map(call => read(call, past, deps)))
      at += reads.length
      continue
    }
    yield* runOne(calls[at++]!, past, deps)
  }
}

/** The tool that a model means: models write its name in another case, and put that of a namespace before it. */
export const offeredName = (offered: readonly Pick<OfferedTool, 'name'>[], said: string): string => {
  const names = offered.map(({ name }) => name)
  if (names.includes(said)) return said
  const bare = said.replace(/^.*[.:/]/, '').toLowerCase()
  const like = names.filter(name => name.toLowerCase() === bare)
  return like.length === 1 ? like[0]! : said
}

const toolOf = ({ name }: CallPart, { offered }: CallDeps): OfferedTool | undefined =>
  offered.find(tool => tool.name === name)

/** The next read-only calls, as many as run at once. */
const readsFrom = (calls: readonly CallPart[], from: number, deps: CallDeps): readonly CallPart[] => {
  const reads = (call: CallPart): boolean => {
    const tool = toolOf(call, deps)
    return call.input !== undefined && tool?.readOnly === true && tool.category !== 'think'
  }
  const end = calls.findIndex((call, at) => at >= from && (at - from === MOST_AT_ONCE || !reads(call)))
  return calls.slice(from, end < 0 ? calls.length : end)
}

const read = async (call: CallPart, past: Replay, { io, keep, most }: CallDeps): Promise<void> => {
  const before = past.call(call.frame)
  const ran = before?.state === 'finished' ? before : await io.tool(call.name, call.input!, call.frame, most)
  await keep(resultEntry(call.frame, ran))
}

const resultEntry = (
  frame: string,
  { ok, text, pictures }: Pick<ToolResult, 'ok' | 'text' | 'pictures'>,
): NewEntry => ({ kind: 'result', frame, ok, text, ...(pictures?.length && { pictures }) })

async function* runOne(call: CallPart, past: Replay, deps: CallDeps): AsyncGenerator<Frame, void> {
  const { io, keep, intend, request } = deps
  const { frame, name, input } = call
  const close = async function* (ok: boolean, text: string): AsyncGenerator<Frame, void> {
    if (!past.call(frame))
      yield { kind: 'tool_call', id: frame, name: name.slice(0, 80), category: 'other', status: 'pending' }
    yield {
      kind: 'tool_call_update',
      id: frame,
      status: ok ? 'completed' : 'failed',
      content: [{ type: 'text', text }],
    }
    await keep({ kind: 'result', frame, ok, text })
  }
  const before = past.call(frame)
  if (before?.state === 'finished') return keep({ kind: 'result', frame, ok: before.ok, text: before.text })
  if (input === undefined) return yield* close(false, call.malformed ?? 'the arguments of the call cannot be read')
  const tool = toolOf(call, deps)
  if (tool && !tool.readOnly) {
    // A call that waits for a person has had no effect yet.
    const held = before?.state === 'held' || request.resume?.replies?.some(({ card }) => card.kind === 'permission')
    const intent = deps.intent?.frame === frame && !held ? deps.intent : undefined
    const stamps = await stampsOf(tool, input, io)
    if (intent) {
      if (intent.stamps.length === 0) return yield* close(false, MAYBE_DONE)
      if (intent.stamps.some((stamp, at) => stamp !== stamps[at])) return yield* close(true, 'made before a restart')
    } else await intend({ frame, stamps })
  }
  const result = await io.tool(name, input, frame, deps.most)
  // The list of a subagent is not that of the turn.
  if (result.ok && name === 'Todo' && request.depth === 0)
    yield { kind: 'todos', items: todo.check(asMeant(name, input, [])).items.map(item => ({ ...item })) }
  await keep(resultEntry(frame, result))
}

/** Hashes of the files that a call changes; none if it changes more than files. */
const stampsOf = async (tool: OfferedTool, input: object, io: TurnIo): Promise<readonly string[]> => {
  if (!FILES.has(tool.category)) return []
  const { path, from, to } = input as { [field: string]: unknown }
  const paths = [path, from, to].filter(value => typeof value === 'string')
  return Promise.all(paths.map(async value => (await io.stamp(value).catch(() => undefined)) ?? ''))
}
