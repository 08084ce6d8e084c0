import type { Files, Store } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import type { Admission, AdmissionAsked, UsageBudget, BudgetScope, BudgetState } from './contract.js'
import { utcDayOf, nanosOf, usdOf, type LedgerLine } from './line.js'
import { periodAt, type Period } from './period.js'
import { inScope, RunningTurns } from './running.js'
import { rootOf, type UsageIndex } from './usage-index.js'

/** What budgets stand on. */
export interface BudgetsDeps {
  readonly index: Pick<UsageIndex, 'spent' | 'spentByRun'>
  readonly files: Pick<Files, 'read' | 'write'>
  readonly store: Pick<Store, 'get' | 'set'>
  readonly now: () => number
  /** Called with each budget that came near its limit or reached it; it is called again where it was cut off. */
  readonly crossed: (budget: BudgetState) => Promise<void>
  /** Called with the ids of budgets whose state changed. */
  readonly changed: (ids: readonly string[]) => void
}

interface Spending {
  readonly spent: number
  readonly running: number
}

/** The state a budget was last reported in, and the period that was in. */
interface Announced {
  readonly state: BudgetState['state']
  readonly start: number
}

const FILE = 'budgets'
const ANNOUNCED = 'announced'
const WARN_AT = 0.8
const RANK = { off: 0, under: 0, near: 1, over: 2 } as const
const STRICTNESS = { ok: 0, warn: 1, hold: 2, refuse: 3 } as const

/** The budgets: stored as one file, counted from the ledger once a period and from then on line by line. */
export class Budgets {
  readonly #deps: BudgetsDeps
  readonly #running = new RunningTurns()
  readonly #locks = new KeyedMutex()
  readonly #counted = new Map<string, { readonly start: number; nanos: number }>()
  #budgets: readonly UsageBudget[] = []
  #announced: { readonly [id: string]: Announced } = {}

  constructor(deps: BudgetsDeps) {
    this.#deps = deps
  }

  async load(): Promise<void> {
    const { files, store } = this.#deps
    this.#budgets = (await files.read<{ budgets: UsageBudget[] }>(FILE))?.budgets ?? []
    this.#announced = (await store.get<{ [id: string]: Announced }>(ANNOUNCED)) ?? {}
  }

  /** Every budget as it is now, in stored order. */
  get states(): BudgetState[] {
    return this.#budgets.map(budget => this.#stateOf(budget))
  }

  /** The first moment at which a period ends. */
  get renewsAt(): number | undefined {
    const ends = this.states.flatMap(({ renewsAt }) => renewsAt ?? [])
    return ends.length > 0 ? Math.min(...ends) : undefined
  }

  /** Replaces the whole list; it is durable when this returns. */
  replace(budgets: readonly UsageBudget[]): Promise<void> {
    return this.#locks.with(FILE, async () => {
      await this.#deps.files.write(FILE, { budgets })
      this.#budgets = budgets
      this.#counted.clear()
    })
  }

  /** Says what the budgets say of a turn, which has used so many billionths of a dollar up to now. */
  admit(asked: AdmissionAsked, nanos: number): Admission {
    if (asked.run !== undefined) this.#running.report(asked.run, asked, nanos)
    let admission: Admission = { verdict: 'ok' }
    for (const budget of this.#budgets) {
      if (!budget.enabled || !inScope(budget.scope, asked)) continue
      if (budget.scope.kind === 'run' && asked.run === undefined) continue
      const period = this.#period(budget)
      const { spent, running } = this.#spending(budget, period, asked.run)
      const all = spent + running + (asked.run === undefined ? nanos : 0)
      if (all < nanosOf(budget.limitUsd) || STRICTNESS[budget.at] <= STRICTNESS[admission.verdict]) continue
      admission = {
        verdict: budget.at,
        budget: budget.id,
        message: sentenceOf(budget, all, period),
        ...(period.end !== undefined && { renewsAt: period.end }),
      }
    }
    return admission
  }

  /** Counts lines that were just written. */
  added(lines: readonly LedgerLine[]): void {
    for (const line of lines) {
      if (line.run !== undefined) this.#running.end(line.run)
      for (const { id, scope, period: kind } of this.#budgets) {
        const counted = this.#counted.get(id)
        if (!counted || !inScope(scope, line)) continue
        if (periodAt(kind, line.at).start === counted.start) counted.nanos += nanosOf(line.costUsd)
      }
    }
  }

  /** Counts everything from the ledger again. */
  recount(): void {
    this.#counted.clear()
  }

  /** Forgets what a run reported while it was going on. */
  settled(run: string): void {
    this.#running.endAll(run)
  }

  /** Reports the budgets whose state changed since the last time. */
  check(): Promise<void> {
    return this.#locks.with(ANNOUNCED, async () => {
      const { changed, crossed, store } = this.#deps
      const moved: string[] = []
      const next: { [id: string]: Announced } = {}
      for (const budget of this.states) {
        const { id, state, periodStart: start } = budget
        const known = this.#announced[id]
        next[id] = { state, start }
        const before = !known || (known.start !== start && known.state !== 'off') ? 'under' : known.state
        if (state === (known?.state ?? 'under') && state === before) continue
        moved.push(id)
        if (RANK[state] > RANK[before]) await crossed(budget)
      }
      const same = JSON.stringify(next) === JSON.stringify(this.#announced)
      this.#announced = next
      if (!same) await store.set(ANNOUNCED, next)
      if (moved.length > 0) changed(moved)
    })
  }

  #period({ period }: UsageBudget): Period {
    return periodAt(period, this.#deps.now())
  }

  #stateOf(budget: UsageBudget): BudgetState {
    const period = this.#period(budget)
    const { spent, running } = this.#spending(budget, period)
    const [all, limit] = [spent + running, nanosOf(budget.limitUsd)]
    const near = all >= (budget.warnAt ?? WARN_AT) * limit
    return {
      ...budget,
      scope: { ...budget.scope },
      spentUsd: usdOf(spent),
      runningUsd: usdOf(running),
      state: !budget.enabled ? 'off' : all >= limit ? 'over' : near ? 'near' : 'under',
      periodStart: period.start,
      ...(period.end !== undefined && { renewsAt: period.end }),
    }
  }

  /** What was spent in a scope; in that of runs by the run named, else by the one that spent most. */
  #spending(budget: UsageBudget, period: Period, run?: string): Spending {
    const { scope } = budget
    if (scope.kind === 'run') {
      const roots = run === undefined ? this.#running.roots : [rootOf(run)]
      return roots
        .map(root => ({ spent: this.#deps.index.spentByRun(root), running: this.#running.spentByRun(root) }))
        .reduce((most, each) => (each.spent + each.running > most.spent + most.running ? each : most), NOTHING)
    }
    return { spent: this.#spent(budget.id, scope, period), running: this.#running.spent(scope) }
  }

  #spent(id: string, scope: Exclude<BudgetScope, { kind: 'run' }>, { start, end }: Period): number {
    const known = this.#counted.get(id)
    if (known?.start === start) return known.nanos
    const nanos = this.#deps.index.spent(scope, utcDayOf(start), end === undefined ? LAST : utcDayOf(end))
    this.#counted.set(id, { start, nanos })
    return nanos
  }
}

const NOTHING: Spending = { spent: 0, running: 0 }
const LAST = '~'

const money = (usd: number): string => `${usd.toFixed(2)} USD`
const EVERY = { day: ' a day', week: ' a week', month: ' a month', total: '' } as const

const sentenceOf = ({ id, label, limitUsd, period, scope }: UsageBudget, nanos: number, { end }: Period): string =>
  `the budget ${label ?? id} of ${money(limitUsd)}${scope.kind === 'run' ? ' a run' : EVERY[period]} is used up: `
  + `${money(usdOf(nanos))} are spent`
  + (end === undefined ? '; raise it to go on' : `; it renews at ${new Date(end).toISOString()}, or raise it to go on`)
