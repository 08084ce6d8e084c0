import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { refuse } from '../../sdk/index.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import type { CardDraft, GatedCall, ToolResult, TurnIo, TurnRequest, Words } from './adapter.js'
import type { CardReply, Conversation } from './contract.js'
import type { Location, ToolCategory } from './frames.js'
import { decide } from './gate.js'
import type { Leg } from './leg.js'
import type { Turn } from './turn.js'

/** Where a turn stands: its tree, and what is said to the provider before the words. */
export interface Ground {
  /** The folder the turn's tools work in: the private copy, or the workspace. */
  readonly root: string
  /** The folder the turn starts in. */
  readonly cwd: string
  /** The notes in front of the words, as the model is given them. */
  readonly preamble: string
  readonly attachments: TurnRequest['attachments']
  readonly mentions: readonly string[]
  readonly allowedTools?: readonly string[]
}

/** What a call shows before it runs. */
export interface CallFace {
  readonly category: ToolCategory
  readonly target?: string
  readonly locations?: Location[]
  readonly command?: string
  readonly path?: string
}

/** The sandbox tools, bound to one turn's tree. */
export interface Toolbox {
  /** How a call shows; undefined: there is no such tool, or its input does not fit. */
  face(name: string, input: object): CallFace | { refused: string }
  run(name: string, input: object, signal: AbortSignal): Promise<ToolResult>
  stamp(path: string): Promise<string | undefined>
}

/** The adapter's side of a turn, and when nothing it began is under way any more. */
export interface WorkingIo extends TurnIo {
  idle(): Promise<void>
}

/** Makes a turn's tree ready and gives its adapter something to work with. */
export interface Workshop {
  prepare(turn: Turn, conversation: Conversation): Promise<Ground>
  /** Brings the tree up to date after a plan or a question was answered. */
  refresh(turn: Turn, conversation: Conversation): Promise<void>
  io(turn: Turn, ground: Ground, leg: Leg): WorkingIo
}

/** What an adapter may do through a turn. */
export interface IoParts {
  readonly toolbox: Toolbox
  /** Tools a person allowed for the rest of the conversation. */
  readonly remembered: { names(): ReadonlySet<string>; add(name: string): void }
}

const MOST_STATE = 4 * 1024 * 1024

/** Nothing more happens for an adapter whose turn goes on elsewhere, or at the next start of the daemon. */
const never = new Promise<never>(() => {})

/** The engine's work for one adapter in one turn. */
export const turnIo = (turn: Turn, ground: Ground, leg: Leg, { toolbox, remembered }: IoParts): WorkingIo => {
  const busy = new Set<Promise<unknown>>()
  const tracked = <T>(work: Promise<T>): Promise<T> => {
    const settled = work.catch(() => {}).finally(() => busy.delete(settled))
    busy.add(settled)
    return work
  }
  /** What comes back to an adapter that is over would be taken for the call's end. */
  const unlessOver = async <T>(work: Promise<T>): Promise<T> => {
    const value = await work
    return leg.over ? never : value
  }

  const raise = async (draft: CardDraft, held = false): Promise<CardReply | undefined> => {
    if (leg.over) return never
    const reply = (held && (await takeAnswer(turn, draft))) || (await leg.parked(turn.raise(draft, held)))
    return leg.over ? never : reply
  }

  const permit = async (call: GatedCall): Promise<string | undefined> => {
    const verdict = decide(call, {
      mode: turn.record.mode ?? turn.entry.fields.permissionMode, remembered: remembered.names(), attended: turn.message.attended,
      ...(ground.allowedTools && { allowedTools: ground.allowedTools }),
    })
    if (verdict.verdict === 'go') return undefined
    if (verdict.verdict === 'refuse') return verdict.reason
    const reply = await raise(verdict.card, true)
    if (reply?.kind !== 'permission') return 'nobody answered'
    if (reply.decision === 'deny') return reply.feedback ? `a person said no: ${reply.feedback}` : 'a person said no'
    if (reply.decision === 'always') remembered.add(call.name)
    return undefined
  }

  const refused = (id: string, reason: string): ToolResult => {
    turn.log.push({ kind: 'tool_call_update', id, status: 'failed', content: [{ type: 'text', text: reason }] })
    return { ok: false, content: [{ type: 'text', text: reason }], text: reason }
  }

  const tool = async (name: string, input: object, id: string): Promise<ToolResult> => {
    const face = toolbox.face(name, input)
    const known = turn.record.openTools.some(call => call.id === id)
    const unknown = 'refused' in face
    const { category, target, locations, command, path } = unknown ? { category: 'other' as const } as CallFace : face
    if (!known) {
      turn.log.push({
        kind: 'tool_call', id, name, category, status: 'pending',
        ...(target && { target: target.slice(0, 200) }), ...(locations && { locations }),
      })
    }
    if (unknown) return refused(id, face.refused)
    const reason = await permit({ id, name, category, ...(command !== undefined && { command }), ...(path !== undefined && { path }) })
    if (leg.signal.aborted) return refused(id, leg.left ? leg.excuse : 'stopped')
    if (reason !== undefined) return refused(id, reason)
    turn.log.push({ kind: 'tool_call_update', id, status: 'in_progress' })
    const result = await toolbox.run(name, input, leg.signal)
    // Left behind by its turn, which closed the call.
    if (!turn.record.openTools.some(call => call.id === id)) return result
    if (leg.left && !result.ok) return refused(id, leg.excuse)
    turn.log.push({ kind: 'tool_call_update', id, status: result.ok ? 'completed' : 'failed', content: result.content })
    leg.rest()
    return result
  }

  /** Waits for words; with nothing else in hand that is a gap too. */
  const waitWords = async (ms?: number): Promise<Words | undefined> => {
    const words = await turn.words.next(busy.size ? leg.signal : AbortSignal.any([leg.signal, leg.leaving]), ms)
    if (!words && !busy.size && leg.leaving.aborted) leg.cut()
    return words
  }

  const gap = async (ms = 0): Promise<boolean> => {
    if (ms > 0) await delay(ms, undefined, { signal: AbortSignal.any([leg.signal, leg.leaving]) }).catch(() => {})
    if (leg.over) return never
    return busy.size === 0 && !leg.signal.aborted && leg.gap()
  }

  return {
    signal: leg.signal,
    gap,
    takeWords: () => (leg.over ? [] : turn.words.take()),
    waitWords: ms => unlessOver(waitWords(ms)),
    raise: card => raise(card),
    tool: (name, input, id) => (leg.over ? never : unlessOver(tracked(tool(name, input, id)))),
    stamp: path => toolbox.stamp(path),
    state: async value => {
      if (leg.over) return never
      const json = JSON.stringify(value)
      if (json.length > MOST_STATE) refuse('too-large', `state: expected at most ${MOST_STATE} bytes, found ${json.length}`)
      await turn.log.settled()
      if (leg.over) return never
      const answered = (turn.entry.fields.answered ?? []).filter(({ held }) => held)
      await turn.entry.change({ state: value, stateSeq: turn.log.seq, unheard: [...turn.words.left], answered })
      failpoint('agent.turn.saved')
      if (leg.over) return never
    },
    mode: to => {
      if (!leg.over) turn.log.push({ kind: 'mode', mode: to })
    },
    idle: async () => void (await Promise.all(busy)),
  }
}

/** The answer a person gave to the same question before a restart: it counts once. */
const takeAnswer = async (turn: Turn, draft: CardDraft): Promise<CardReply | undefined> => {
  const answered = turn.entry.fields.answered ?? []
  const mine = answered.find(({ card: { requestId: _id, ...card }, held }) => held && isDeepStrictEqual(card, draft))
  if (!mine) return undefined
  await turn.entry.change({ answered: answered.filter(other => other !== mine) })
  return mine.reply
}
