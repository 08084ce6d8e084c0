import { Refusal, type Context, type Host } from '../../sdk/index.js'
import { valueMasker } from '../../sdk/node/access/value-masker.js'
import type { RunEnd } from '../agent/contract.js'
import { askChecks } from './checks.js'
import type { LoopIteration } from './contract.js'
import { loopFile, type LoopFiles } from './documents.js'
import { roundWords } from './round-words.js'
import { isUnverified, newRound, type RoundInHand, type StoredLoop } from './stored-loop.js'

const MOST_TITLE = 60

/** How the turn of a round ended. */
export interface RoundEnd {
  readonly end: RunEnd
  readonly failure?: string
  readonly report?: string
  /** Left out: it ended before this start of the daemon. */
  readonly costUsd?: number
}
/** What became of the message of a round. */
export interface RoundFate extends RoundEnd {
  readonly open: boolean
}

type RoundsHost = Pick<Host, 'call' | 'serves' | 'log'>

/** The rounds of loops: ordinary turns, and what is checked after each. */
export class Rounds {
  readonly #host: RoundsHost
  readonly #files: LoopFiles

  constructor(host: RoundsHost, files: LoopFiles) {
    this.#host = host
    this.#files = files
  }

  /** The next round of a loop; its documents of earlier rounds are removed. */
  async prepare(loop: StoredLoop, asked: boolean): Promise<RoundInHand> {
    const { conversationId: id, isolated, iterations } = loop
    const state = await this.state(id)
    // The private copy of a new conversation is made with its first turn.
    const before = state || !isolated ? await this.#content(id) : undefined
    await this.#files.clear(id, { memory: iterations.length === 0 })
    return newRound(iterations.length + 1, {
      spentBefore: state?.conversation.totals.costUsd ?? 0,
      ...(before?.hash !== undefined && { before: before.hash }),
      ...(asked && { asked: true as const }),
    })
  }

  /** Starts the turn of a round. */
  async start(loop: StoredLoop, { run, messageId }: RoundInHand, context: Context | undefined): Promise<void> {
    const { conversationId, goal, isolated, agent, account, harness, model, actsAs, worktreeBase, autoLand, lands } =
      loop
    const title = loop.title ?? goal.split('\n', 1)[0]!.trim().slice(0, MOST_TITLE).trim()
    const writes = loop.output.kind !== 'none' || loop.context === 'fresh'
    await this.#host.call(
      'agent.start',
      {
        ...{ conversationId, run, messageId, isolated, lands, unattended: true, fresh: loop.context === 'fresh' },
        prompt: roundWords(loop),
        ...(title && { title }),
        ...(writes && { document: loopFile(conversationId) }),
        ...(agent !== undefined && { agent }),
        ...(account !== undefined && { account }),
        ...(harness !== undefined && { harness }),
        ...(model === undefined ? { runRole: 'loop-iteration' as const } : { model }),
        ...(actsAs !== undefined && { actsAs }),
        ...(worktreeBase && { worktreeBase: structuredClone(worktreeBase) }),
        ...(autoLand !== undefined && { autoLand }),
      },
      context ? { as: context } : {},
    )
  }

  /** What became of a round that the last run of the daemon began; undefined: it was never accepted. */
  async fate({ messageId }: RoundInHand): Promise<RoundFate | undefined> {
    const { started, open, end = 'interrupted', failure } = await this.#host.call('agent.fate', { messageId })
    return started && { open, end, ...(failure !== undefined && { failure }) }
  }

  /** Whether the turn of the round in hand runs. */
  async isLive({ conversationId, round }: StoredLoop): Promise<boolean> {
    return round !== undefined && (await this.state(conversationId))?.live?.run === round.run
  }

  /** Stops the turn of the round in hand and waits for its end; false: none ran, and none will. */
  async halt(loop: StoredLoop, context?: Context): Promise<boolean> {
    const conversationId: string = loop.conversationId
    if (await this.isLive(loop)) {
      await this.#host.call('POST /agent/stop', { conversationId }, context ? { as: context } : {})
      return true
    }
    await this.withdraw(loop)
    return false
  }

  /** Takes the message of the round in hand from the queue, if it waits there. */
  async withdraw({ conversationId, round }: StoredLoop): Promise<void> {
    const id: string = conversationId
    if (!round || !(await this.state(id))?.waiting) return
    const { messageId } = round
    await this.#host.call('DELETE /agents/{id}/queue/{messageId}', { id, messageId }).catch((error: unknown) => {
      if (Refusal.from(error).reason !== 'not-found') throw error
    })
  }

  /** The oldest open need that a conversation waits for. */
  async openNeed(conversationId: string): Promise<string | undefined> {
    if (!(await this.#host.serves('needs.open'))) return undefined
    return (await this.#host.call('needs.open', { conversationId })).ids[0]
  }

  /** A conversation with its live turn; undefined: there is none. */
  async state(id: string) {
    return this.#host.call('agent.conversation', { id }).catch((error: unknown) => {
      if (Refusal.from(error).reason === 'not-found') return undefined
      throw error
    })
  }

  /** Reads and checks what a round did; returns what changes of its loop. */
  async judge(
    loop: StoredLoop,
    end: RoundEnd,
    signal: AbortSignal,
  ): Promise<Pick<StoredLoop, 'iterations' | 'costUsd' | 'report'>> {
    const { conversationId: id, round, iterations } = loop
    const { n, run, before, spentBefore } = round!
    const state = await this.state(id)
    const { totals, session } = state?.conversation ?? {}
    const costUsd = end.costUsd ?? Math.max(0, (totals?.costUsd ?? spentBefore) - spentBefore)
    const stopped = end.end === 'stopped' || signal.aborted || !state
    const changed = !stopped && (await this.#changed(id, before))
    const verdict = stopped
      ? { outcome: 'continue' as const, detail: 'it was stopped' }
      : await this.#verdict(loop, end, signal)
    const sessionId = session?.id
    // A document or what a command printed may hold the value of a secret.
    const iteration: LoopIteration = (await valueMasker(this.#host)).maskJson({
      ...{ n, at: Date.now(), costUsd, changed, run, ...verdict },
      ...(sessionId !== undefined && { sessionId }),
    })
    return {
      iterations: [...iterations, iteration],
      costUsd: loop.costUsd + costUsd,
      ...(end.report !== undefined && { report: end.report }),
    }
  }

  /** The document first, then the checks, up to the first that says no. */
  async #verdict(
    loop: StoredLoop,
    { end, failure, report = '' }: RoundEnd,
    signal: AbortSignal,
  ): Promise<Pick<LoopIteration, 'outcome' | 'detail' | 'document' | 'checks'>> {
    const { conversationId, output, checks } = loop
    if (isUnverified(loop)) {
      if (end === 'failed') return { outcome: 'error', detail: failure ?? 'its turn failed' }
      const waits = (await this.openNeed(conversationId)) !== undefined
      return waits ? { outcome: 'continue', detail: 'its agent needs something first' } : { outcome: 'done' }
    }
    const read = output.kind === 'none' ? undefined : await this.#files.read(conversationId, output)
    const document = read && 'document' in read ? read.document : undefined
    const open = read && ('problem' in read ? read.problem : read.document.done ? undefined : read.document.reason)
    const failed = (why: string) => ({
      ...{ outcome: end === 'failed' ? ('error' as const) : ('continue' as const), detail: failure ?? why },
      ...(document && { document }),
    })
    if (open !== undefined) return failed(open)
    try {
      const results = await askChecks(this.#host, loop, report, signal)
      const asked = checks.length > 0 && { checks: results }
      const no = results.find(({ ok }) => !ok)
      if (no) return { ...failed(no.detail ?? 'a check does not hold'), ...asked }
      return { outcome: 'done', ...(document && { document }), ...asked }
    } catch (error) {
      if (!signal.aborted) throw error
      return failed('it was stopped before its checks had ended')
    }
  }

  /** Whether a round changed the tree; without a repository that is not known, and counts as changed. */
  async #changed(id: string, before: string | undefined): Promise<boolean> {
    const after = await this.#content(id)
    if (after?.hash === undefined) return true
    return before === undefined ? after.untouched !== true : after.hash !== before
  }

  async #content(id: string) {
    return this.#host.call('checkouts.content', { id }).catch((error: unknown) => {
      this.#host.log.warn('reading the tree of a loop failed', { conversation: id, error: String(error) })
      return undefined
    })
  }
}
