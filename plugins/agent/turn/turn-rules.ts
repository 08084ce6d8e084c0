import type { Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { OccasionFacts, RuleMoment, RulesFired, StandingRule } from '../../settings/contract.js'
import type { Turn } from './turn.js'
import { ignored } from '../../../sdk/index.js'

const MOST_ROUNDS = 3

/** What a turn, or a conversation in all, has changed. */
export interface ChangedFiles {
  readonly repos: readonly string[]
  /** From the root of the workspace. */
  readonly paths: readonly string[]
}

/** The dependencies of asking rules. */
export interface TurnRulesDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly changes: {
    ofTurn(turn: Turn): Promise<ChangedFiles>
    /** All the work on the conversation's branch. */
    ofBranch(conversationId: string): Promise<ChangedFiles>
  }
}

/** Asks the standing rules of the settings: when an agent has finished, and when its work may land. */
export class TurnRules {
  readonly #deps: TurnRulesDeps

  constructor(deps: TurnRulesDeps) {
    this.#deps = deps
  }

  /** Runs the rules at the end of a turn; returns whether the agent has one more round, at most three a turn. */
  async anotherRound(turn: Turn): Promise<boolean> {
    if (turn.frozen || turn.signal.aborted || turn.end !== 'completed') return false
    turn.checking = true
    try {
      return await this.#checked(turn)
    } catch (error) {
      if (turn.signal.aborted) return false
      this.#deps.host.log.error('the rules at the end of a turn failed', { run: turn.run, error: String(error) })
      turn.log.push({ kind: 'notice', level: 'warning', text: 'the rules at the end of the turn could not be asked' })
      // A check that could not be made never counts as passed.
      await turn.entry.change({ unmet: true }).catch(ignored('the failure of the rules is told'))
      return false
    } finally {
      turn.checking = false
    }
  }

  async #checked(turn: Turn): Promise<boolean> {
    const { changes } = this.#deps
    const { conversationId, entry, log } = turn
    const standing = await this.#standing('turn.ending')
    if (standing.length === 0) return false
    const { nth = 0, said = [] } = entry.fields.round ?? {}
    const asked = standing.some(({ asks }) => asks.includes('paths') || asks.includes('repo'))
    const facts: OccasionFacts = { ...(asked && factsOf(await changes.ofTurn(turn))), outcome: 'clean' }
    const fired = await this.#fire(turn, 'turn.ending', facts, [...said])
    const unmet = fired.ran.some(({ outcome }) => outcome === 'failed')
    if (unmet !== (entry.fields.unmet ?? false)) await entry.change({ unmet: unmet || undefined })
    const { instruct = [] } = fired
    if (instruct.length === 0 || nth === MOST_ROUNDS || turn.signal.aborted) return false
    const text = turn.masker.mask(instruct.map(one => one.text).join('\n\n'))
    const ids = instruct.map(({ id }) => id)
    log.push({
      ...{ kind: 'steer', text, sentAt: Date.now(), by: `rule:${ids[0]}` },
      ...(unmet && { errand: 'verify-nudge' }),
    })
    await log.settled()
    await entry.change({
      round: { nth: nth + 1, text, said: [...new Set([...said, ...ids])] },
      // The next round begins here: what the adapter saved belongs to the one before.
      ...{ state: undefined, stateSeq: log.seq, unheard: [...turn.words.left] },
    })
    await record(this.#deps.host, {
      type: 'rule.continued_turn',
      outcome: 'ok',
      actor: `conversation:${conversationId}`,
      conversationId,
      extra: { ids, round: nth + 1 },
    })
    return true
  }

  /** Whether the rules let the work of a completed turn land; without a rule it waits. */
  async mayLand(turn: Turn): Promise<boolean> {
    const { host, changes } = this.#deps
    try {
      if ((await this.#standing('agent.finished')).length === 0) return false
      const changed = await changes.ofBranch(turn.conversationId)
      if (changed.paths.length === 0) return false
      const outcome = turn.entry.fields.unmet ? 'error' : 'clean'
      const facts: OccasionFacts = { ...factsOf(changed), outcome }
      return (await this.#fire(turn, 'agent.finished', facts)).go
    } catch (error) {
      host.log.error('asking the rules whether work may land failed', { run: turn.run, error: String(error) })
      return false
    }
  }

  async #standing(moment: RuleMoment): Promise<readonly StandingRule[]> {
    const { host } = this.#deps
    return (await host.serves('rules.standing')) ? (await host.call('rules.standing', { moment })).rules : []
  }

  async #fire(turn: Turn, moment: RuleMoment, facts: OccasionFacts, said: string[] = []): Promise<RulesFired> {
    const { conversationId, signal, log } = turn
    const fired = await this.#deps.host.call('rules.fire', { moment, facts, conversationId, said }, { signal })
    for (const ran of fired.ran) log.push({ kind: 'rule', moment, ...ran })
    return fired
  }
}

const factsOf = ({ repos, paths }: ChangedFiles): OccasionFacts => ({ repos: [...repos], paths: [...paths] })
