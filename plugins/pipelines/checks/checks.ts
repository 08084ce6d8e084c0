import { setTimeout as sleep } from 'node:timers/promises'
import { refuse, type Events, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { OccasionFacts, RuleMoment } from '../../settings/contract.js'
import type { StoredCheck, StoredPipelineFix } from './stored.js'

const KEY = 'check/'
const DIGITS = 12
const MOST_CHECKS = 100
const MOST_PATHS = 2_000
const ENDS_WITHIN_MS = 15_000
const MOMENT: RuleMoment = 'push.starting'
/** No forge gives ids as large. */
const FIRST_ID = 8_000_000_000_000_000

/** The id of a check among the runs of its repository. */
export const checkRunId = ({ number }: Pick<StoredCheck, 'number'>): number => FIRST_ID + number

/** Whether a run is a check before a push. */
export const isCheck = (runId: number): boolean => runId > FIRST_ID

type Began = Events['rules.began']

export interface ChecksDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'on' | 'log' | 'store' | 'signal'>
  /** Replaces the values of secrets in a text, so that none is stored. */
  readonly masked: (text: string) => Promise<string>
  /** Called with each check that changed, once it is stored. */
  readonly changed: (check: StoredCheck) => void
}

/** The checks before a push: group settings runs the rules, and their runs are kept here. */
export class Checks {
  readonly #deps: ChecksDeps
  readonly #turns = new KeyedMutex()
  readonly #all = new Map<number, StoredCheck>()
  /** The one that runs, and the last one since the start. */
  #running: StoredCheck | undefined
  #last: StoredCheck | undefined
  /** Resolved when the next check is visible, and when the running one has ended. */
  #visible = Promise.withResolvers<void>()
  #ended = Promise.withResolvers<void>()

  constructor(deps: ChecksDeps) {
    this.#deps = deps
    const { host } = deps
    const later = (what: string, work: () => Promise<void>) =>
      void this.#turns
        .with('check', work)
        .catch(error => host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
    host.on('rules.began', began => began.moment === MOMENT && later('noting a check', () => this.#begin(began)))
    host.on('rule.running', ({ moment, ...rule }) => {
      if (moment === MOMENT) later('noting a rule', () => this.#ruleRuns(rule))
    })
    host.on('rule.ran', ({ moment, ...rule }) => {
      if (moment === MOMENT) later('noting the end of a rule', () => this.#ruleRan(rule))
    })
    host.on('rules.ended', ({ moment, ...end }) => {
      if (moment === MOMENT) later('noting the end of a check', () => this.#end(end))
    })
  }

  /** Reads what is stored; what ran when the daemon ended was cancelled by that. */
  async load(documents: readonly (readonly [key: string, value: unknown])[]): Promise<void> {
    for (const [key, value] of documents) {
      if (key.startsWith(KEY)) this.#all.set((value as StoredCheck).number, value as StoredCheck)
    }
    for (const check of this.#all.values()) {
      if (check.status !== 'running') continue
      const finishedAt = Date.now()
      check.status = 'cancelled'
      check.finishedAt = finishedAt
      for (const rule of check.rules) if (rule.startedAt !== undefined) rule.finishedAt ??= finishedAt
      await this.#store(check)
      this.#last = check
    }
  }

  /** All that are kept. */
  get all(): readonly StoredCheck[] {
    return [...this.#all.values()]
  }

  /** The one that runs, else the last one since the start. */
  get latest(): StoredCheck | undefined {
    return this.#running ?? this.#last
  }

  find(runId: number): StoredCheck | undefined {
    return this.#all.get(runId - FIRST_ID)
  }

  /** Starts a check of what is uncommitted, or joins the running one; returns when it is visible. */
  async start(): Promise<void> {
    const { host } = this.#deps
    if (this.#running || !(await host.serves('rules.fire'))) return
    await this.#fire({ facts: await this.#uncommitted() })
  }

  /** Starts the rules of a check again. */
  async again({ facts, cwd }: StoredCheck): Promise<void> {
    if (!facts) return refuse('unprocessable', 'the push changed more files than are kept of it: push again')
    if (this.#running) refuse('conflict', 'a check before a push is running')
    if (!(await this.#deps.host.serves('rules.fire')))
      refuse('unprocessable', 'rules are not run: this sandbox runs without the group settings')
    await this.#fire({ facts, ...(cwd !== undefined && { cwd }) })
  }

  /** Ends the running check, and waits until it has ended. */
  async cancel(): Promise<void> {
    const { host } = this.#deps
    if (!this.#running || !(await host.serves('rules.cancel'))) return
    const { promise } = this.#ended
    await host.call('rules.cancel', { moment: MOMENT })
    await Promise.race([promise, sleep(ENDS_WITHIN_MS, undefined, { ref: false, signal: host.signal })])
  }

  /** Notes the fix of a check; undefined: it has none. */
  async noteFix(check: StoredCheck, fix: StoredPipelineFix | undefined): Promise<void> {
    await this.#turns.with('check', async () => {
      if (fix) check.fix = fix
      else delete check.fix
      await this.#store(check)
    })
  }

  async #fire(occasion: { readonly facts: OccasionFacts; readonly cwd?: string }): Promise<void> {
    const { host } = this.#deps
    const { promise: visible } = this.#visible
    const fired = host
      .call('rules.fire', { moment: MOMENT, ...occasion }, { signal: host.signal })
      .then(() => {})
      .catch(error => void (host.signal.aborted || host.log.error('running rules failed', { error: String(error) })))
    await Promise.race([visible, fired])
  }

  /** Every repository, and what is uncommitted in them. */
  async #uncommitted(): Promise<OccasionFacts> {
    const { host } = this.#deps
    if (!(await host.serves('GET /git/repos'))) return { repos: ['root'], paths: [] }
    const repos = ['root', ...(await host.call('GET /git/repos')).repos]
    const paths = await Promise.all(
      repos.map(async repo => {
        const status = await host.call('GET /git/{repo}/status', { repo }).catch(() => undefined)
        return (status?.files ?? []).map(path => (repo === 'root' ? path : `${repo}/${path}`))
      }),
    )
    return { repos, paths: paths.flat() }
  }

  async #begin({ facts, cwd, rules, startedAt }: Began): Promise<void> {
    const { repos = [], paths = [] } = facts
    const trigger = cwd === undefined ? 'manual' : 'push'
    const [repo = 'root'] = repos
    const check: StoredCheck = {
      number: Math.max(0, ...this.#all.keys()) + 1,
      ...{ repo, repos, trigger, branch: '', sha: '', status: 'running', startedAt },
      ...(paths.length <= MOST_PATHS && { facts }),
      ...(cwd !== undefined && { cwd }),
      rules: rules.map(({ id, label, command }) => ({ id, label, ...(command !== undefined && { command }) })),
    }
    const { host } = this.#deps
    if (await host.serves('GET /git/{repo}/status')) {
      const { branch, head = '' } = await host
        .call('GET /git/{repo}/status', { repo })
        .catch(() => ({ branch: '', head: '' }))
      Object.assign(check, { branch, sha: head })
    }
    await this.#store(check)
    failpoint('pipelines.check.began')
    this.#all.set(check.number, check)
    this.#running = check
    this.#ended = Promise.withResolvers()
    this.#deps.changed(check)
    this.#visible.resolve()
    this.#visible = Promise.withResolvers()
    for (const old of this.all.toSorted((one, other) => one.number - other.number).slice(0, -MOST_CHECKS)) {
      this.#all.delete(old.number)
      await host.store.delete(keyOf(old))
    }
  }

  async #ruleRuns({ ruleId, ...began }: Omit<Events['rule.running'], 'moment'>): Promise<void> {
    const { startedAt, session } = began
    await this.#note(ruleId, { startedAt, ...(session !== undefined && { session }) })
  }

  async #ruleRan({ ruleId, outcome: _outcome, ...end }: Omit<Events['rule.ran'], 'moment'>): Promise<void> {
    await this.#note(ruleId, { finishedAt: Date.now(), ...end, output: await this.#deps.masked(end.output) })
  }

  async #note(ruleId: string, news: object): Promise<void> {
    const check = this.#running
    const rule = check?.rules.find(({ id }) => id === ruleId)
    if (!check || !rule) return
    Object.assign(rule, news)
    await this.#store(check)
    this.#deps.changed(check)
  }

  async #end({ go, reason, cancelled, endedAt }: Omit<Events['rules.ended'], 'moment'>): Promise<void> {
    const check = this.#running
    if (!check) return
    check.status = go ? 'passed' : cancelled ? 'cancelled' : failureOf(check)
    check.finishedAt = endedAt
    if (reason !== undefined && !go) check.reason = await this.#deps.masked(reason)
    await this.#store(check)
    this.#running = undefined
    this.#last = check
    this.#deps.changed(check)
    this.#ended.resolve()
  }

  async #store(check: StoredCheck): Promise<void> {
    await this.#deps.host.store.set(keyOf(check), structuredClone(check))
  }
}

const keyOf = ({ number }: Pick<StoredCheck, 'number'>): string => KEY + String(number).padStart(DIGITS, '0')

/** Why a check did not pass: its last command failed, or could not be run. */
const failureOf = ({ rules }: StoredCheck): 'failed' | 'error' => {
  const last = rules.findLast(({ startedAt }) => startedAt !== undefined)
  return last && last.exitCode === undefined && !last.timedOut ? 'error' : 'failed'
}
