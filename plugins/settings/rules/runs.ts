import type { Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { record } from '../../../sdk/node/record/record.js'
import { treeCommands, whyNotRun, type RuleCommandEnd, type RuleCommands } from './commands.js'
import type {
  ActingRule,
  FiringOutcome,
  OccasionFacts,
  RuleMoment,
  RuleRun,
  RulesFired,
  RulesTried,
  RuleWords,
} from './contract.js'
import { ignored } from '../../../sdk/index.js'

const USUAL_MS = 900_000
const MOST_DETAIL = 4_000

/** What rules are asked about. */
export interface RuleOccasion {
  readonly moment: RuleMoment
  readonly facts: OccasionFacts
  readonly cwd?: string
  readonly conversationId?: string
  readonly said?: readonly string[]
}

/** The dependencies of running rules. */
export interface RuleRunsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'emit' | 'log'>
  readonly matching: (moment: RuleMoment, facts: OccasionFacts) => Promise<RulesTried>
  readonly stamp: (id: string, outcome: FiringOutcome) => Promise<void>
  /** Runs the commands of a push. */
  readonly push: RuleCommands
}

/** A run that others may join; it ends when nobody waits for it any more. */
interface SharedRun {
  readonly result: Promise<RulesFired>
  readonly stop: AbortController
  waiting: number
}

/** Runs the rules of a moment. */
export class RuleRuns {
  readonly #deps: RuleRunsDeps
  readonly #turns = new KeyedMutex()
  /** Pushes under way, by their occasion. */
  readonly #pushes = new Map<string, SharedRun>()
  readonly #running = new Map<RuleMoment, Set<AbortController>>()

  constructor(deps: RuleRunsDeps) {
    this.#deps = deps
  }

  /** Runs what acts on an occasion, in order. */
  fire(occasion: RuleOccasion, signal: AbortSignal): Promise<RulesFired> {
    switch (occasion.moment) {
      case 'turn.ending':
        return this.#stoppable('turn.ending', signal, limit => this.#endTurn(occasion, limit))
      case 'push.starting':
        return this.#joined(occasion, signal)
      case 'agent.finished':
        return this.#decide(occasion)
    }
  }

  /** Ends what runs at a moment; returns how many runs that were. */
  cancel(moment: RuleMoment): number {
    const running = [...(this.#running.get(moment) ?? [])]
    for (const stop of running) stop.abort()
    return running.length
  }

  async #stoppable<T>(
    moment: RuleMoment,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    stop = new AbortController(),
  ): Promise<T> {
    const running = this.#running.get(moment) ?? new Set()
    this.#running.set(moment, running.add(stop))
    try {
      return await work(AbortSignal.any([signal, stop.signal]))
    } finally {
      running.delete(stop)
    }
  }

  // At the end of a turn ----------------------------------------------------------------------------------------------

  async #endTurn(occasion: RuleOccasion, signal: AbortSignal): Promise<RulesFired> {
    const { host, matching, stamp } = this.#deps
    const { moment, facts, conversationId, said = [] } = occasion
    const ran: RuleRun[] = []
    const instruct: RuleWords[] = []
    const { matched } = await matching(moment, facts)
    const commands = conversationId === undefined ? undefined : treeCommands(host, conversationId)
    for (const rule of matched) {
      const { id, label, action } = rule
      if (action.kind === 'instruct' && !said.includes(id)) {
        instruct.push({ id, label, text: action.text })
        ran.push({ id, label, action: 'instruct', outcome: 'ok' })
        await stamp(id, 'acted')
      }
      if (action.kind === 'command' && commands) {
        const { command, timeoutMs = USUAL_MS } = action
        const failure = await this.#run(rule, moment, commands, { command, timeoutMs }, signal)
        ran.push(ranAs(rule, failure))
        if (failure !== undefined) instruct.push(wordsOf(rule, command, failure))
        await stamp(id, 'acted')
      }
      if (action.kind === 'builtin' && commands) {
        const checks = await this.#checks(conversationId!, facts)
        const failures: string[] = []
        for (const { folder, command } of checks) {
          const asked = { command, folder, timeoutMs: USUAL_MS }
          const failure = await this.#run(rule, moment, commands, asked, signal)
          if (failure === undefined) continue
          failures.push(failure)
          instruct.push(wordsOf(rule, `${command} in ${folder}`, failure))
        }
        if (checks.length === 0) continue
        ran.push(ranAs(rule, failures.length > 0 ? failures.join('\n') : undefined))
        await stamp(id, 'acted')
      }
    }
    return { go: instruct.length === 0, ran, ...(instruct.length > 0 && { instruct }) }
  }

  /** The declared checks of the packages that a turn edited. */
  async #checks(id: string, { paths = [] }: OccasionFacts): Promise<{ folder: string; command: string }[]> {
    if (!(await this.#deps.host.serves('checkouts.packageChecks'))) return []
    return (await this.#deps.host.call('checkouts.packageChecks', { id, paths: [...paths] })).checks
  }

  // Before a push -----------------------------------------------------------------------------------------------------

  /** One push is checked at a time; one on the same occasion takes part in the check under way. */
  async #joined(occasion: RuleOccasion, signal: AbortSignal): Promise<RulesFired> {
    const key = JSON.stringify([occasion.cwd, occasion.facts])
    const shared = this.#pushes.get(key) ?? this.#begin(key, occasion)
    shared.waiting++
    const leave = Promise.withResolvers<never>()
    const onAbort = () => leave.reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      signal.throwIfAborted()
      return await Promise.race([shared.result, leave.promise])
    } finally {
      signal.removeEventListener('abort', onAbort)
      if (--shared.waiting === 0) shared.stop.abort()
    }
  }

  #begin(key: string, occasion: RuleOccasion): SharedRun {
    const stop = new AbortController()
    const result = this.#turns
      .with('push', () =>
        this.#stoppable('push.starting', stop.signal, limit => this.#beforePush(occasion, limit), stop),
      )
      .finally(() => this.#pushes.delete(key))
    result.catch(ignored('the caller that awaits it gets the failure'))
    const shared: SharedRun = { result, stop, waiting: 0 }
    this.#pushes.set(key, shared)
    return shared
  }

  /** Runs the rules that apply to a push; other groups learn when the first one begins and how the last one ended. */
  async #beforePush(occasion: RuleOccasion, signal: AbortSignal): Promise<RulesFired> {
    const { host, matching } = this.#deps
    const { moment, facts, cwd } = occasion
    const { matched } = await matching(moment, facts)
    if (matched.length === 0) return { go: true, ran: [] }
    const rules = matched.map(({ id, label, action }) => ({
      ...{ id, label },
      ...(action.kind === 'command' && { command: action.command }),
    }))
    const startedAt = Date.now()
    host.emit('rules.began', { moment, facts, rules, startedAt, ...(cwd !== undefined && { cwd }) })
    let fired: RulesFired | undefined
    try {
      return (fired = await this.#runBeforePush(occasion, matched, signal))
    } finally {
      const { go = false, reason } = fired ?? {}
      const cancelled = !go && signal.aborted && ({ cancelled: true } as const)
      host.emit('rules.ended', {
        ...{ moment, go, endedAt: Date.now(), ...cancelled },
        ...(reason !== undefined && { reason }),
      })
    }
  }

  async #runBeforePush(
    { moment, facts, cwd }: RuleOccasion,
    matched: readonly ActingRule[],
    signal: AbortSignal,
  ): Promise<RulesFired> {
    const { stamp, push } = this.#deps
    const ran: RuleRun[] = []
    for (const rule of matched) {
      const { id, label, action } = rule
      if (action.kind === 'verdict') {
        ran.push({ id, label, action: 'verdict', outcome: 'hold' })
        await stamp(id, 'held')
        await this.#blocked(rule, facts)
        return { go: false, ruleId: id, label, reason: `the rule "${label}" holds this push`, ran }
      }
      if (action.kind !== 'command') continue
      const { command, timeoutMs = USUAL_MS } = action
      const asked = { command, timeoutMs, ...(cwd !== undefined && { folder: cwd }) }
      const failure = await this.#run(rule, moment, push, asked, signal)
      ran.push(ranAs(rule, failure))
      await stamp(id, failure === undefined ? 'acted' : 'blocked')
      if (failure === undefined) continue
      await this.#blocked(rule, facts)
      return { go: false, ruleId: id, label, reason: `the rule "${label}" does not pass: ${failure}`, ran }
    }
    return { go: true, ran }
  }

  #blocked({ id, label }: ActingRule, { repos = [] }: OccasionFacts): Promise<void> {
    return record(this.#deps.host, {
      type: 'rule.blocked_push',
      outcome: 'ok',
      extra: { id, label, repos: repos.slice(0, 20) },
    })
  }

  // When work may land ------------------------------------------------------------------------------------------------

  async #decide({ moment, facts, conversationId }: RuleOccasion): Promise<RulesFired> {
    const { host, matching, stamp } = this.#deps
    const { matched, verdict } = await matching(moment, facts)
    const [rule] = matched
    if (!rule) return { go: false, ran: [] }
    const { id, label } = rule
    const go = verdict === 'allow'
    await stamp(id, go ? 'acted' : 'held')
    if (!go)
      await record(host, {
        type: 'rule.held_work',
        outcome: 'ok',
        ...(conversationId !== undefined && { conversationId }),
        extra: { id, label },
      })
    const ran: RuleRun[] = [{ id, label, action: 'verdict', outcome: go ? 'allow' : 'hold' }]
    return { go, ruleId: id, label, ran, ...(!go && { reason: `the rule "${label}" holds this work` }) }
  }

  /** Runs a command; returns why it does not pass, undefined: it does. */
  async #run(
    { id }: ActingRule,
    moment: RuleMoment,
    commands: RuleCommands,
    asked: { readonly command: string; readonly timeoutMs: number; readonly folder?: string },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { host } = this.#deps
    const { command, timeoutMs } = asked
    const { session } = commands
    host.emit('rule.running', {
      moment,
      ruleId: id,
      command,
      startedAt: Date.now(),
      ...(session !== undefined && { session }),
    })
    const end = await commands.run({ ...asked, signal }).catch((error: unknown): RuleCommandEnd => {
      if (signal.aborted) return { output: 'it was cancelled' }
      host.log.warn('a command of a rule could not be run', { rule: id, error: String(error) })
      return { output: whyNotRun(error) }
    })
    const { exitCode, timedOut, output } = end
    host.emit('rule.ran', { moment, ruleId: id, outcome: exitCode === 0 ? 'ok' : 'failed', ...end })
    if (exitCode === 0) return undefined
    if (timedOut) return `it did not end within ${timeoutMs} ms and was stopped${output && `\n${output}`}`
    return exitCode === undefined ? output || 'it was stopped' : `it exited with ${exitCode}${output && `\n${output}`}`
  }
}

const ranAs = ({ id, label, action: { kind } }: ActingRule, failure: string | undefined): RuleRun => ({
  ...{ id, label, action: kind, outcome: failure === undefined ? 'ok' : 'failed' },
  ...(failure !== undefined && { detail: failure.slice(-MOST_DETAIL).toWellFormed() }),
})

const wordsOf = ({ id, label }: ActingRule, command: string, failure: string): RuleWords => ({
  id,
  label,
  text: `The check "${label}" (${command}) does not pass: ${failure}`,
})
