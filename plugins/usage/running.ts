import type { BudgetScope } from './contract.js'
import { rootOf } from './usage-index.js'

/** What a scope tells turns apart by. */
export interface ScopeFacts {
  readonly provider: string
  readonly account?: string
  readonly persona?: string
  readonly conversationId?: string
  readonly unattended: boolean
}

/** Whether a turn is in a scope; every run is in the scope of runs. */
export const inScope = (scope: BudgetScope, facts: ScopeFacts): boolean => {
  switch (scope.kind) {
    case 'all':
    case 'run':
      return true
    case 'provider':
      return facts.provider === scope.provider
    case 'account':
      return facts.provider === scope.provider && facts.account === scope.account
    case 'persona':
      return facts.persona === scope.persona
    case 'conversation':
      return facts.conversationId === scope.conversationId
    case 'unattended':
      return facts.unattended
  }
}

interface RunningTurn {
  readonly facts: ScopeFacts
  readonly nanos: number
}

/** What turns that are going on have used, as far as they reported it; in memory, for they end with the daemon. */
export class RunningTurns {
  readonly #turns = new Map<string, RunningTurn>()

  /** Replaces what a run has used up to now. */
  report(run: string, facts: ScopeFacts, nanos: number): void {
    if (nanos > 0) this.#turns.set(run, { facts, nanos })
    else this.#turns.delete(run)
  }

  /** Forgets a run, which is in the ledger now or is over. */
  end(run: string): void {
    this.#turns.delete(run)
  }

  /** Forgets a run and its subagents. */
  endAll(root: string): void {
    for (const run of this.#turns.keys()) if (rootOf(run) === root) this.#turns.delete(run)
  }

  /** Billionths of a dollar of all turns in a scope. */
  spent(scope: BudgetScope): number {
    let nanos = 0
    for (const turn of this.#turns.values()) if (inScope(scope, turn.facts)) nanos += turn.nanos
    return nanos
  }

  /** Billionths of a dollar of a run and its subagents. */
  spentByRun(root: string): number {
    let nanos = 0
    for (const [run, turn] of this.#turns) if (rootOf(run) === root) nanos += turn.nanos
    return nanos
  }

  /** The runs that have reported something. */
  get roots(): string[] {
    return [...new Set([...this.#turns.keys()].map(rootOf))]
  }
}
