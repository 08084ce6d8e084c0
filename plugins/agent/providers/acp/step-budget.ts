import type { StepAdmitted } from '../../spending/admission.js'
import type { TurnFailure } from '../adapter.js'

/** Asks the budgets whether a turn that has cost so much up to now may go on. */
export type AskStep = (costUsd: number | undefined) => Promise<StepAdmitted>

/** The budgets between the steps of a program: while they are asked, nothing of what it says or wants goes on. */
export class StepBudget {
  readonly #ask: AskStep | undefined
  readonly #stop = new AbortController()
  #asking: Promise<void> | undefined
  #failure: TurnFailure | undefined
  /** What the turn has cost up to now, where the program says so. */
  spent: () => number | undefined = () => undefined

  constructor(ask: AskStep | undefined) {
    this.#ask = ask
  }

  /** Ends the turn's prompt once the budgets refuse. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Why the budgets refused. */
  get failure(): TurnFailure | undefined {
    return this.#failure
  }

  /** Resolves once the answer to what was asked last is there; undefined: nothing is asked. */
  get asking(): Promise<void> | undefined {
    return this.#asking
  }

  /** A step begins: resolves when the turn may go on, or ends. */
  step(): Promise<void> {
    if (!this.#ask || this.#failure) return Promise.resolve()
    this.#asking ??= this.#decide(this.#ask).finally(() => (this.#asking = undefined))
    return this.#asking
  }

  async #decide(ask: AskStep): Promise<void> {
    const decided = await ask(this.spent())
    if (decided.ok) return
    this.#failure = { code: 'rate_limit', message: decided.message }
    this.#stop.abort()
  }
}
