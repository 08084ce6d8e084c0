import { Refusal, refuse } from '../../../sdk/index.js'
import type { Host, Journals, Log } from '../../../sdk/index.js'
import { GitFailure } from '../../../sdk/node/programs/git.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { tooLarge } from '../../../sdk/node/files/large-files.js'
import type { Sender } from './access.js'
import type { Anchor, Anchors } from './anchors.js'
import type { Conversation, CopyRepo } from '../contract.js'
import type { Conversations } from './conversations.js'
import type { Copies } from '../copies/copies.js'
import type { Tip } from '../copies/states.js'
import type { Engine } from '../turn/engine.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { commitIn } from './pins.js'
import type { Queue } from '../queue/queue.js'
import type { Transcripts } from './transcripts.js'

/** The dependencies of a rewind. */
export interface RewindDeps {
  readonly engine: Pick<Engine, 'live' | 'closing'>
  readonly conversations: Conversations
  readonly queue: Queue
  readonly transcripts: Transcripts
  readonly anchors: Anchors
  readonly copies: Copies
  /** Ends the commands that run in the background, which would write into what is restored. */
  readonly endPrograms: (conversationId: string) => Promise<void>
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly decisions: KeyedMutex
  readonly locks: KeyedMutex
  readonly journal: Pick<Journals, 'append' | 'read' | 'remove' | 'list'>
  readonly log: Log
}

/** The result of a rewind. */
export interface Rewound {
  readonly snapshot: string
  readonly dropped: number
}

/** A rewind in progress, stored so that a restart can complete it. */
interface Begun {
  readonly index: number
  readonly anchor: Anchor
  /** The commits of the copy before, to restore if git fails. */
  readonly before: readonly Tip[]
  /** The newest run of the record before and after the rewind. */
  readonly last: string | undefined
}

const begunOf = (conversationId: string) => `rewinds/${conversationId}`

/**
 * Rewinds a conversation to before one of its messages: first its files, then its record, then the provider's session.
 */
export const rewind = async (
  deps: RewindDeps,
  { conversationId, index, expect }: { conversationId: string; index: number; expect?: string },
  { held }: Pick<Sender, 'held'>,
  signal: AbortSignal,
): Promise<Rewound> => {
  const { engine, conversations, decisions, locks } = deps
  conversations.get(conversationId)
  return decisions.with(conversationId, async () => {
    if (engine.closing) refuse('unavailable', 'the sandbox is shutting down; try again when it is back')
    const live = engine.live(conversationId)
    if (live) refuse('conflict', `a turn of ${conversationId} is ${live.state}: stop it, then go back`)
    const release = await locks.hold(conversationId, signal)
    try {
      await assertNewest(deps, conversationId, expect)
      // The restored state was not approved by a person who may land.
      if (held !== undefined) await conversations.update(conversationId, { landsAlone: undefined })
      await deps.endPrograms(conversationId)
      return await goBack(deps, conversations.get(conversationId), index)
    } finally {
      release()
    }
  })
}

/** Refuses to drop messages that came after those that somebody saw. */
const assertNewest = async ({ transcripts }: RewindDeps, id: string, expect: string | undefined): Promise<void> => {
  const run = expect === undefined ? undefined : await transcripts.last(id)
  if (run === expect) return
  refuse('conflict', `another turn of ${id} ran since: expected ${expect} to be the newest, found ${run ?? 'none'}`, {
    fields: { ...(run !== undefined && { run }) },
  })
}

const goBack = async (deps: RewindDeps, conversation: Conversation, index: number): Promise<Rewound> => {
  const { copies, transcripts } = deps
  const { id } = conversation
  const anchor = await anchorAt(deps, conversation, index)
  const last = await transcripts.last(id)
  if (anchor.shared) return carryOut(deps, conversation, { index, anchor, before: [], last })
  await asked(copies.ensure(id, conversation.repos))
  const before = await asked(copies.commitRest(id, conversation.repos))
  const lost = before.flatMap(({ large = [] }) => large).find(({ tracked }) => tracked)
  if (lost)
    refuse(
      'conflict',
      `${tooLarge(lost.path, lost.size)}, and going back would lose it: have the agent rename it first`,
    )
  return carryOut(deps, conversation, { index, anchor, before, last })
}

const carryOut = async (deps: RewindDeps, conversation: Conversation, begun: Begun): Promise<Rewound> => {
  const { engine, journal } = deps
  const { anchor } = begun
  const name = begunOf(conversation.id)
  await journal.append(name, [begun], { flush: true })
  failpoint('agent.rewind.begun')
  if (!anchor.shared) return { snapshot: anchor.id, dropped: await complete(deps, conversation, begun) }
  const point = await restoreShared(deps, anchor).catch(async (error: unknown) => {
    // The next start looks at what a stop interrupted.
    if (!engine.closing) await journal.remove(name)
    throw error
  })
  return { snapshot: anchor.id, dropped: await complete(deps, conversation, { ...begun, point }) }
}

/** Brings the shared tree back to a saved point; returns the point before. */
const restoreShared = async ({ host }: RewindDeps, { id }: Anchor): Promise<string> => {
  if (!(await host.serves('history.rewind')))
    refuse('unavailable', 'this sandbox runs without the group history, which keeps the states of the shared tree')
  const { point, failed } = await host.call('history.rewind', { id }).catch((error: unknown) => {
    if (Refusal.from(error).reason !== 'not-found') throw error
    return refuse('conflict', 'the saved point of this message is gone: points are kept for 90 days')
  })
  const [lost] = failed
  if (!lost) return point
  await host.call('history.rewind', { id: point, force: true })
  return refuse('dependency', `nothing was removed: ${lost.scope} could not be restored: ${lost.message}`)
}

/** Whether the shared tree went back before a crash: what people changed since is never taken back at a start. */
const wentBack = async ({ host }: RewindDeps, { id }: Anchor): Promise<boolean> =>
  (await host.serves('history.rewound')) && (await host.call('history.rewound', { id })).back

/** The saved state of a position in the record; refuses if one of its commits is missing. */
const anchorAt = async (
  { anchors, transcripts, copies }: RewindDeps,
  conversation: Conversation,
  index: number,
): Promise<Anchor> => {
  const { id, branch } = conversation
  const row = await transcripts.row(id, index)
  const total = await transcripts.count(id)
  if (row && row.role !== 'user')
    refuse('conflict', `index: expected the position of a user message, found a message of ${row.role} at ${index}`)
  const mine = await anchors.before(id, index, row)
  if (!row && (index > total || !mine))
    refuse('not-found', `index: expected a position in the record of ${total} rows, found ${index}`)
  if (!mine) {
    return refuse(
      'conflict',
      branch
        ? `the message at ${index} has no saved state: it was sent into a running turn, or its turn ended before `
            + 'its files were saved'
        : `the message at ${index} has no saved state: it was sent into a running turn, or the shared tree could not `
            + 'be saved before it',
    )
  }
  const folders = new Map((await copies.repositories()).map(({ repo, dir }) => [repo, dir]))
  for (const { repo, tip } of mine.repos) {
    const dir = folders.get(repo)
    if (!dir || (await commitIn(dir, tip)) === undefined)
      refuse(
        'conflict',
        `the message at ${index} has a saved state whose commit ${tip.slice(0, 12)} of ${repo} is gone`,
      )
  }
  return mine
}

/**
 * Completes a rewind, also after a crash; returns the number of removed rows.
 *
 * `point` is that of the shared tree before it was restored; left out after a crash.
 */
const complete = async (
  deps: RewindDeps,
  { id, repos }: Conversation,
  { index, anchor, before, point }: Begun & { readonly point?: string },
): Promise<number> => {
  const { copies, transcripts, anchors, conversations, queue, journal, host } = deps
  let dropped: number
  try {
    if (!anchor.shared) await asked(copies.restore(id, anchor.repos))
    failpoint('agent.rewind.restored')
    dropped = await transcripts.cut(id, index)
    failpoint('agent.rewind.cut')
  } catch (error) {
    if (!anchor.shared) await copies.restore(id, before)
    else if (point !== undefined) await host.call('history.rewind', { id: point, force: true })
    await journal.remove(begunOf(id))
    throw error
  }
  await anchors.cut(id, index)
  failpoint('agent.rewind.forgotten')
  await queue.pause(id)
  failpoint('agent.rewind.paused')
  await queue.resume(id)
  await conversations.update(id, {
    repos: repos.map((repo): CopyRepo => ({
      ...repo,
      base: anchor.repos.find(each => each.repo === repo.repo)?.base ?? repo.base,
    })),
    session: undefined,
    lastRun: undefined,
    lastEnd: undefined,
    failure: undefined,
    conflicts: undefined,
    contextTokens: undefined,
    contextWindow: undefined,
    updatedAt: Date.now(),
  })
  failpoint('agent.rewind.told')
  await journal.remove(begunOf(id))
  failpoint('agent.rewind.over')
  return dropped
}

/** Passes on git's error message. */
const asked = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    return refuse('dependency', `nothing was removed: ${error.message}`, { cause: error })
  }
}

/** Completes rewinds that a crash interrupted, before anything else happens in their conversations. */
export const recoverRewinds = async (deps: RewindDeps): Promise<void> => {
  const { journal, conversations, queue, transcripts, copies, log } = deps
  for (const name of await journal.list(begunOf(''))) {
    const id = name.slice(begunOf('').length)
    try {
      const [begun] = await journal.read<Begun>(name)
      const conversation = conversations.find(id)
      const last = conversation && (await transcripts.last(id))
      // A message or run after an interrupted rewind takes precedence over it.
      const newer =
        queue.current(id) !== undefined || (last !== begun?.last && (await transcripts.count(id)) !== begun?.index)
      if (!begun || !conversation || newer) {
        await journal.remove(name)
        continue
      }
      if (!begun.anchor.shared) await copies.ensure(id, conversation.repos)
      else if (!(await wentBack(deps, begun.anchor))) {
        await journal.remove(name)
        continue
      }
      await complete(deps, conversation, begun)
      log.warn('completed an interrupted rewind', { conversation: id })
    } catch (error) {
      log.error('completing an interrupted rewind failed', { conversation: id, error: String(error) })
    }
  }
}
