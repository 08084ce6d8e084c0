import type { Positive } from '../../../sdk/index.js'
import type { CardLoop, CardWorkflow, ConversationState, LiveTurn, RunEnd } from '../../agent/contract.js'
import type { AgentActivity, AgentAttention, AgentCard, AgentStatus } from '../contract.js'
import type { LandedNote } from '../landing/landed-messages.js'
import type { BranchStatus } from '../work/branch-status.js'

const LIVE: { readonly [state in LiveTurn['state']]: AgentStatus } = {
  running: 'running',
  parked: 'awaiting',
  stopping: 'stopping',
}
const ENDED: { readonly [end in RunEnd]?: AgentStatus } = {
  failed: 'error',
  stopped: 'stopped',
  interrupted: 'interrupted',
}
const SHORT = 10

/** Facts about a conversation besides its record. */
export interface CardFacts {
  readonly branchStatus: BranchStatus
  /** The run whose work landed after it had ended, which overrides its end in the status. */
  readonly landedRun?: string
  readonly loop?: CardLoop
  readonly workflow?: CardWorkflow
  readonly landed?: LandedNote
}

/**
 * The status of a card: that of the live turn, else of the turn that resumes after an outage, else the end of the last
 * run until its work lands, else the branch status.
 */
export const statusOf = (
  { conversation, live, resumesAt }: ConversationState,
  { branchStatus, landedRun }: CardFacts,
): AgentStatus => {
  if (live) return LIVE[live.state]
  if (resumesAt !== undefined) return 'resuming'
  const { lastEnd, lastRun, conflicts } = conversation
  const ended = lastEnd && ENDED[lastEnd]
  if (ended && !(landedRun !== undefined && landedRun === lastRun)) return ended
  if (branchStatus.work === 'outstanding') return conflicts?.length ? 'conflict' : 'ready'
  return branchStatus.work === 'landed' ? 'landed' : 'idle'
}

const attentionOf = (live: LiveTurn | undefined, status: AgentStatus): AgentAttention => {
  const open = new Set<string>(live?.cards.map(({ kind }) => kind))
  return {
    plan: open.has('plan'),
    question: open.has('question'),
    permission: open.has('permission'),
    help: open.has('browser_help') || open.has('terminal_help'),
    service: open.has('service_offer'),
    capability: open.has('capability_offer'),
    payment: open.has('payment_offer'),
    conflict: status === 'conflict',
  }
}

const activityOf = (live: LiveTurn | undefined): AgentActivity | undefined => {
  const { tool, target, todo } = live ?? {}
  if (tool === undefined && todo === undefined) return undefined
  return {
    ...(tool !== undefined && { tool }),
    ...(target !== undefined && { target }),
    ...(todo !== undefined && { todo }),
  }
}

const subagentsOf = ({ conversation, live }: ConversationState): AgentCard['subagents'] => {
  const { running = 0, total = 0 } = live?.helpers ?? {}
  const { totals, lastRun, lastEnd } = conversation
  // A run that is being recorded is already in the totals.
  const all = totals.helpers + (lastEnd !== undefined && lastRun === live?.run ? 0 : total)
  return all > 0 ? { running, total: all } : undefined
}

/** Removes undefined fields. */
const present = <T extends object>(fields: { [K in keyof T]?: T[K] | undefined }): Partial<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>

/** The card of a conversation, from its record, its live turn and its branch status. */
export const cardOf = (state: ConversationState, facts: CardFacts): AgentCard => {
  const { conversation, live, waiting, queuePaused } = state
  const status = statusOf(state, facts)
  const { totals, repos, session, lastRun, lastEnd } = conversation
  return {
    id: conversation.id,
    status,
    provider: conversation.provider,
    harness: conversation.harness,
    openedBy: conversation.openedBy,
    lastBy: conversation.lastBy,
    attention: attentionOf(live, status),
    updatedAt: conversation.updatedAt,
    turns: totals.turns,
    toolUses: totals.toolUses,
    costUsd: totals.costUsd,
    inputTokens: totals.inputTokens,
    outputTokens: totals.outputTokens,
    ...present<AgentCard>({
      sessionId: session?.id,
      title: conversation.title,
      failure: status === 'error' ? conversation.failure : undefined,
      model: conversation.model,
      effort: conversation.effort,
      thinking: conversation.thinking,
      fast: conversation.fast,
      account: conversation.account?.provider === conversation.provider ? conversation.account.id : undefined,
      placement: { kind: 'local' },
      actsAs: conversation.actsAs,
      startIn: conversation.startIn,
      permissionMode: conversation.permissionMode,
      folders: conversation.folders,
      forkedFrom: conversation.forkedFrom,
      origin: conversation.origin,
      branch: conversation.branch,
      base:
        conversation.branch === undefined ? undefined : repos.find(({ repo }) => repo === 'root')?.base.slice(0, SHORT),
      run: live?.run ?? lastRun,
      lastEnd: live ? undefined : lastEnd,
      cards: live && live.cards.length > 0 ? live.cards : undefined,
      // The comparison ensures that it is at least 1.
      waiting: waiting > 0 ? (waiting as Positive) : undefined,
      queuePaused: queuePaused || undefined,
      contextTokens: conversation.contextTokens,
      contextWindow: conversation.contextWindow,
      unenforced: live ? live.unenforced : conversation.unenforced,
      activity: activityOf(live),
      autoLand: conversation.autoLand,
      resumeAfterOutage: conversation.resumeAfterOutage,
      landRequested: conversation.landRequested,
      subagents: subagentsOf(state),
      processes: state.processes,
      diff: facts.branchStatus.diff,
      landedPresence: facts.branchStatus.presence,
      landedMessage: facts.landed?.landedMessage,
      landedMessageDraft: facts.landed?.landedMessageDraft,
      loop: facts.loop,
      workflow: facts.workflow,
      startedAt: live?.startedAt,
      seenAt: conversation.seenAt,
      archivedAt: conversation.archivedAt,
    }),
  }
}
