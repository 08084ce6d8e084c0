import type { StepAdmitted } from '../../spending/admission.js'
import type { TurnFailure } from '../adapter.js'

/** Asks the budgets whether a turn may continue. */
export type AskStep = () => Promise<StepAdmitted>

/** Checks budgets between the steps of a program; during a check its requests and updates wait. */
export class StepBudget {
  readonly #ask: AskStep | undefined
  readonly #stop = new AbortController()
  #asking: Promise<void> | undefined
  #failure: TurnFailure | undefined
  #told = 0
  /** The cost of the turn so far, if the program reports it. */
  spent: () => number | undefined = () => undefined
  /** Resolves when all frames of the turn are in its log, where the budgets find what they cost. */
  logged: () => Promise<void> = () => Promise.resolve()

  constructor(ask: AskStep | undefined) {
    this.#ask = ask
  }

  /** Ends the turn's prompt once the budgets refuse. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** The cost that was not returned yet, for a frame; undefined: there is none. */
  untold(): number | undefined {
    const spent = this.spent()
    if (spent === undefined || (spent <= this.#told && this.#told > 0)) return undefined
    const costUsd = Math.max(0, spent - this.#told)
    this.#told += costUsd
    return costUsd
  }

  /** Why the budgets refused. */
  get failure(): TurnFailure | undefined {
    return this.#failure
  }

  /** Resolves when the running check is done; undefined: none is running. */
  get asking(): Promise<void> | undefined {
    return this.#asking
  }

  /** Checks the budgets before a step; resolves when the turn may continue, or ends. */
  step(): Promise<void> {
    if (!this.#ask || this.#failure) return Promise.resolve()
    this.#asking ??= this.#decide(this.#ask).finally(() => (this.#asking = undefined))
    return this.#asking
  }

  async #decide(ask: AskStep): Promise<void> {
    await this.logged()
    const decided = await ask()
    if (decided.ok) return
    this.#failure = { code: 'rate_limit', message: decided.message }
    this.#stop.abort()
  }
}
