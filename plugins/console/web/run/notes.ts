import type { Card, Frame, TodoItem } from '../../../agent/contract.js'
import type { LineRow } from './row-kinds.js'

/** The state of a run for the status bar and the side pane. */
export interface RunStanding {
  readonly todos: readonly TodoItem[]
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly usage?: { readonly costUsd?: number; readonly inputTokens?: number; readonly outputTokens?: number }
  readonly context?: { readonly tokens: number; readonly contextWindow: number }
  readonly model?: string
  readonly provider?: string
  readonly note?: string
  readonly mode?: string
  /** How often the queue changed. */
  readonly queued: number
}

const END_WORDS = { failed: 'The turn failed.', stopped: 'The turn was stopped.', interrupted: 'The turn was cut off.' }
const RULED = { ok: 'done.', failed: 'it does not pass.', allow: 'the work may land.', hold: 'the work waits.' }
const RESUMED = { restart: 'a restart', outage: 'an outage', auth: 'a new sign-in' }
/** Frames that create or change rows directly. */
type RowKind =
  | Card['kind']
  | 'session'
  | 'delta'
  | 'text_end'
  | 'thinking'
  | 'steer'
  | 'tool_call'
  | 'tool_call_update'
  | 'subagent'
  | 'subagent_update'
  | 'resolved'

/** Frames that are one line, or part of the status bar. */
export type NotedFrame = Exclude<Frame, { kind: RowKind }>

/** What such a frame can change of its run. */
export interface NotedRun {
  standing(): RunStanding
  stand(change: Partial<RunStanding>): void
  line(level: LineRow['level'], text: string, details?: LineRow['details']): void
  /** Adds a line to a card. */
  cardEvent(requestId: string, event: string): void
  /** The message that began the run can be returned to. */
  checkpoint(index: number): void
  end(reason: string): void
}

/** What a frame adds to its run. */
export type Note<F extends Frame> = (frame: F, run: NotedRun) => void

/** Each kind of frame that is not a row itself: one that is left out does not compile. */
export type FrameNotes = { readonly [kind in NotedFrame['kind']]: Note<Extract<Frame, { kind: kind }>> }

/** What each of these frames adds to its run. */
export const FRAME_NOTES: FrameNotes = {
  worktree: ({ sync, unenforced, branch, base }, run) => {
    const blocked = sync?.blocked.length ? ` ${sync.blocked.join(', ')} could not be brought up to date.` : ''
    const open = unenforced ? ' This machine cannot isolate it.' : ''
    run.line(
      unenforced || blocked ? 'warning' : 'quiet',
      `Private copy ${branch} of ${base.slice(0, 12)}.${open}${blocked}`,
    )
  },
  preamble: ({ notes }, run) => run.line('quiet', `The sandbox added ${notes.length} notes.`, notes),
  init: ({ model, provider, unenforced }, run) => {
    run.stand({ model, ...(provider && { provider }) })
    if (unenforced?.length) run.line('warning', `The program cannot be held to: ${unenforced.join(', ')}.`)
  },
  tier: ({ tier, model, routed }, run) => {
    const easy = `easy: it ${routed ? 'runs' : 'could run'} on ${model}`
    run.line('quiet', `Judged ${tier === 'fast' ? easy : 'not easy'}.`)
  },
  switched: ({ provider, model }, run) => {
    run.stand({ provider, ...(model && { model }) })
    run.line('info', `The turn goes on with ${provider} ${model ?? ''}.`)
  },
  resumed: ({ reason }, run) => run.line('info', `The turn was resumed after ${RESUMED[reason] ?? String(reason)}.`),
  checkpoint: ({ index }, run) => {
    if (index !== undefined) run.checkpoint(index)
  },
  mode: ({ mode }, run) => {
    run.stand({ mode })
    run.line('quiet', `Permission mode: ${mode}.`)
  },
  todos: ({ items }, run) => run.stand({ todos: items }),
  commands: ({ items }, run) => run.stand({ commands: items }),
  usage: ({ costUsd, inputTokens, outputTokens, subagent }, run) => {
    if (subagent !== undefined) return
    const before = run.standing().usage ?? {}
    const usage = {
      ...(costUsd !== undefined && { costUsd: (before.costUsd ?? 0) + costUsd }),
      ...(inputTokens !== undefined && { inputTokens: (before.inputTokens ?? 0) + inputTokens }),
      ...(outputTokens !== undefined && { outputTokens: (before.outputTokens ?? 0) + outputTokens }),
    }
    run.stand({ usage: { ...before, ...usage } })
  },
  context_usage: ({ tokens, contextWindow }, run) => run.stand({ context: { tokens, contextWindow } }),
  rate_limit_info: ({ status }, run) => {
    if (status === 'allowed') return
    run.line('warning', `A limit of the provider is ${status === 'rejected' ? '' : 'almost '}reached.`)
  },
  account_usage: ({ windows }, run) => {
    const shares = windows.map(({ label, kind, utilization }) => `${label ?? kind} ${Math.round(utilization)} %`)
    run.stand({ note: shares.join(' · ') })
  },
  fast_mode: ({ state, reason }, run) => run.line('quiet', `Fast mode: ${state}${reason ? ` (${reason})` : ''}.`),
  provider_retry: ({ attempt, maxAttempts, message }, run) => {
    const which = [attempt, maxAttempts].filter(Boolean).join(' of ')
    run.line('warning', `The provider is asked again: attempt ${which}${message ? `, because ${message}` : ''}.`)
  },
  compact: ({ detail }, run) => run.line('info', `The context was made shorter${detail ? `: ${detail}` : ''}.`),
  service_event: ({ requestId, event }, run) =>
    run.cardEvent(requestId, event.event === 'status' ? event.text : JSON.stringify(event.data)),
  service_receipt: ({ requestId, outcome, credits, simulated }, run) =>
    run.cardEvent(requestId, `${outcome}: ${credits} credits${simulated ? ' (simulated)' : ''}`),
  capability_outcome: ({ requestId, outcome }, run) =>
    run.cardEvent(requestId, outcome === 'connected' ? 'It was connected.' : 'It was not connected.'),
  payment_receipt: ({ requestId, outcome, amountUsd, simulated }, run) =>
    run.cardEvent(requestId, `${outcome}: ${amountUsd} USD${simulated ? ' (simulated)' : ''}`),
  queue: (_, run) => run.stand({ queued: run.standing().queued + 1 }),
  notice: ({ level, text }, run) => run.line(level, text),
  error: ({ message }, run) => run.line('error', message),
  landed: ({ held, landed }, run) => {
    if (held) return run.line('info', 'The work waits for somebody who may land it.')
    if (landed) return run.line('info', 'The work was landed: it is in the workspace, as uncommitted changes.')
    run.line('warning', 'The work was not landed: it has conflicts. Review the changes to choose.')
  },
  browser: ({ session }, run) => run.line('info', `Uses the browser ${session}`),
  terminal: ({ session }, run) => run.line('info', `Uses the terminal ${session}`),
  need: ({ status, title }, run) => run.line('info', `Need ${status}: ${title}`),
  approval: ({ status, title }, run) => run.line('info', `Approval ${status}: ${title}`),
  rule: ({ label, outcome, detail }, run) =>
    run.line(
      outcome === 'failed' || outcome === 'hold' ? 'warning' : 'quiet',
      `Rule “${label}”: ${RULED[outcome]}`,
      detail ? [{ title: 'What it said', text: detail }] : undefined,
    ),
  done: ({ reason }, run) => {
    run.end(reason)
    if (reason === 'completed') return
    run.line(reason === 'failed' ? 'error' : 'info', END_WORDS[reason] ?? `The turn ended: ${String(reason)}.`)
  },
}
