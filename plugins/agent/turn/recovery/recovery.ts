import type { Journals, Log } from '../../../../sdk/index.js'
import { titleOf } from '../../cards/kinds.js'
import type { OpenCards } from '../../cards/cards.js'
import type { TurnInput } from '../../contract.js'
import type { Conversations } from '../../conversations/conversations.js'
import type { Engine } from '../engine.js'
import { framesOf } from '../frames/frame-log.js'
import type { Frame } from '../frames/frames.js'
import { failSubagents } from '../../subagents/end.js'
import type { Queue } from '../../queue/queue.js'
import { entryFrom, entryOf, type EntryFields, type RunMessage } from '../run-entry.js'
import type { Turn } from '../turn.js'
import { isLostCard } from '../turn-cards.js'

/** The dependencies of the recovery of runs. */
export interface RestartDeps {
  readonly engine: Engine
  readonly conversations: Conversations
  readonly queue: Queue
  readonly cards: OpenCards
  readonly journal: Journals
  readonly log: Log
  /** Whether interrupted turns resume automatically (`autoResumeOnRestart`). */
  readonly resumes: () => Promise<boolean>
  /** Removes half-written files beside these paths of a conversation's tree. */
  readonly sweep: (conversationId: string, paths: readonly string[]) => Promise<void>
  /** Ends the terminal that a turn handed over. */
  readonly endTerminal: (conversationId: string) => void
  /** Tells the budgets what a turn that goes on has used. */
  readonly spent: (turn: Turn) => Promise<void>
  /** Whether the work of a turn may land automatically. */
  readonly lands: (conversationId: string, input: TurnInput) => boolean
}

interface Found {
  readonly fields: EntryFields
  readonly lines: number
}

const MOST_BOOTS = 1
const OLDEST_MS = 6 * 3_600_000
const FRAMES_KEPT_MS = 7 * 24 * 3_600_000

/** Recovers what the last daemon left: ends, restores or resumes every run in flight, then starts what waits. */
export const restart = async (deps: RestartDeps): Promise<void> => {
  const { engine, conversations, queue, log } = deps
  const found = await entries(deps)
  for (const { fields } of found) queue.adopt(fields.message.conversationId, fields.message.run)
  const newest = new Map(found.map(({ fields }) => [fields.message.conversationId, fields.message.run]))
  for (const entry of found) {
    const { run, conversationId } = entry.fields.message
    try {
      await recoverRun(deps, entry, newest.get(conversationId) === run)
    } catch (error) {
      log.error('recovering a run failed', {
        run,
        error: error instanceof Error ? error.stack : String(error),
      })
    }
  }
  for (const id of queue.busy) {
    if (engine.live(id)) continue
    const conversation = conversations.find(id)
    if (!conversation) await queue.drop(id)
    else {
      const next = queue.current(id) ?? (queue.paused(id) ? undefined : queue.take(id))
      if (!next) continue
      // Frames without an entry are from a run that never began.
      await deps.journal.remove(framesOf(next.run))
      engine.start(next)
    }
  }
}

/** The readable entries, oldest run first; the others are kept aside. */
const entries = async ({ journal, log, queue }: RestartDeps): Promise<Found[]> => {
  const found: Found[] = []
  for (const name of await journal.list(entryOf(''))) {
    const run = name.slice(entryOf('').length)
    const lines = await journal.read<unknown>(name).catch(() => undefined)
    if (lines?.length === 0) {
      // Killed before its first line was complete: the run never began, and its message is still queued.
      await journal.remove(name)
      continue
    }
    const fields = lines && entryFrom(lines)
    if (fields && fields.message.run === run) {
      found.push({ fields, lines: lines.length })
      continue
    }
    log.error('the entry of a run cannot be read: it is kept aside as journal bad/<run>, and the run counts as over', {
      run,
    })
    await journal.rename(name, `bad/${run}`)
    const message = queue.message(run)
    if (message) found.push({ fields: lost(message), lines: 0 })
  }
  return found.sort((one, other) => one.fields.startedAt - other.fields.startedAt)
}

/** Replaces an entry that cannot be read, with enough to end its run. */
const lost = (message: RunMessage): EntryFields => ({
  message,
  startedAt: message.at,
  attempt: 1,
  boots: 0,
  provider: '',
  harness: 'native',
  model: '',
  permissionMode: 'default',
  parked: [],
  ending: 'interrupted',
  outsiders: true,
})

const recoverRun = async (deps: RestartDeps, { fields, lines }: Found, newest: boolean): Promise<void> => {
  const { engine, conversations, queue, cards, journal, log } = deps
  const { run, conversationId } = fields.message
  if (!conversations.find(conversationId)) {
    await journal.remove(entryOf(run))
    return journal.remove(framesOf(run))
  }
  const frames = (await journal.read<{ event: Frame }>(framesOf(run))).map(({ event }) => event)
  const turn = engine.adopt(fields, { frames, lines })
  await deps.sweep(
    conversationId,
    turn.record.openTools.flatMap(({ locations = [] }) => locations.map(({ path }) => path)),
  )
  log.info('a run of the last daemon was found', {
    run,
    conversation: conversationId,
    frames: frames.length,
    state: turn.state,
  })
  const over = turn.record.done ?? fields.ending
  if (newest && conversations.find(conversationId)?.lastRun !== run)
    await conversations.update(conversationId, {
      lastRun: run,
      lastEnd: undefined,
      failure: undefined,
      archivedAt: undefined,
    })
  if (!over) offerWords(queue, turn)
  if (!over) await deps.spent(turn)
  const goesOn = fields.boots < MOST_BOOTS && Date.now() - fields.startedAt < OLDEST_MS && (await deps.resumes())
  for (const effect of turn.restart(!newest ? 'supersede' : goesOn ? 'restart' : 'give-up')) {
    if (effect === 'fail-subagents') await failSubagents(turn, cards)
    else if (effect === 'cancel-offers') await cancelLostCards(deps, turn)
    else if (effect === 'restore-cards') await restoreCards(deps, turn)
    else if (effect === 'resume') await resume(deps, turn)
    else if (effect === 'finish') {
      if (frames.some(({ kind }) => kind === 'terminal')) deps.endTerminal(conversationId)
      const finished = engine.finish(turn, { next: newest })
      // Landing waits until everything has started.
      const lands = newest && (over || turn.stopping) && deps.lands(conversationId, fields.message.input)
      if (!lands) await finished
    }
  }
}

/** Resumes a turn where its adapter was. */
const resume = async ({ engine }: RestartDeps, turn: Turn): Promise<void> => {
  const { boots, attempt } = turn.entry.fields
  await turn.entry.change({ boots: boots + 1, attempt: attempt + 1 })
  await turn.log.write({ kind: 'resumed', reason: 'restart', attempt: attempt + 1 })
  void engine.drive(turn, { reason: 'restart' })
}

/** Adds accepted messages that are not in the frames yet; offers those that no adapter took again. */
const offerWords = (queue: Queue, turn: Turn): void => {
  for (const words of turn.entry.fields.unheard ?? []) turn.words.put(words)
  for (const words of queue.said(turn.conversationId, turn.run)) {
    if (!turn.record.said(words.messageId)) void turn.say(words)
  }
}

/** Cancels the cards whose services and browsers ended with the last daemon. */
const cancelLostCards = async ({ cards }: RestartDeps, turn: Turn): Promise<void> => {
  const dead = turn.entry.fields.parked.filter(parked => isLostCard(parked, turn.record))
  if (!dead.length) return
  for (const { card } of dead) {
    const { requestId } = card
    const shown = turn.record.card(requestId)
    if (!shown) continue
    cards.settle(requestId, turn.conversationId)
    if (shown.resolved) continue
    await turn.log.write({ kind: 'resolved', requestId })
    await turn.log.write({
      kind: 'notice',
      level: 'warning',
      text: `a restart took back "${titleOf(card)}": what stood behind it is gone`,
    })
  }
  await turn.entry.change({ parked: turn.entry.fields.parked.filter(parked => !dead.includes(parked)) })
}

/** Opens the cards again; the turn continues when the last one is answered. */
const restoreCards = async ({ engine, cards }: RestartDeps, turn: Turn): Promise<void> => {
  const { attempt, parked } = turn.entry.fields
  const before = turn.entry.fields.answered ?? []
  const answered = [...before]
  const up = parked.filter(({ card, holds }) => {
    const resolved = turn.record.card(card.requestId)?.resolved
    if (!resolved) return true
    cards.settle(card.requestId, turn.conversationId, resolved.reply)
    if (resolved.reply) answered.push({ card, reply: resolved.reply, ...(holds && { holds }) })
    return false
  })
  // The sender of an answer that only the log has is unknown.
  const found = answered.length > before.length && { outsiders: true, tokens: true }
  await turn.entry.change({ attempt: attempt + 1, answered, parked: up, ...found })
  const put = await Promise.all(up.map(card => turn.put(card)))
  await turn.log.settled()
  void Promise.all(put.map(({ reply }) => reply)).then(() => engine.drive(turn, { reason: 'answered' }))
}

/** Removes old frames: of older runs, of deleted conversations, and a week after the end. */
export const sweep = async ({
  engine,
  conversations,
  journal,
}: Pick<RestartDeps, 'engine' | 'conversations' | 'journal'>): Promise<void> => {
  // Lists the names first: a run that begins meanwhile becomes its conversation's newest before it has a log.
  const names = await journal.list(framesOf(''))
  const oldest = Date.now() - FRAMES_KEPT_MS
  const kept = new Set<string>()
  for (const { id, lastRun, lastEnd, updatedAt } of conversations.all) {
    const live = engine.live(id)
    if (live) kept.add(framesOf(live.run))
    if (lastRun && (!lastEnd || updatedAt > oldest)) kept.add(framesOf(lastRun))
  }
  for (const name of names) if (!kept.has(name)) await journal.remove(name)
}
