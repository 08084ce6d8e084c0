import type { AgentEvents } from '../../agent/contract.js'
import type { Fire } from './fire.js'
import { ignored } from '../../../sdk/index.js'

/** How the turn of a fire ended. */
export type TurnEnd = Pick<AgentEvents['turn.settled'], 'end' | 'failure' | 'report' | 'costUsd'>

/** What a fire came to, as far as its sender waits for it. */
export type FireOutcome =
  | { readonly kind: 'started'; readonly conversationId: string; readonly run: string }
  | { readonly kind: 'held'; readonly id: string }
  | { readonly kind: 'skipped'; readonly detail: string }

/** A fire that has not ended. */
export class LiveFire {
  fire: Fire
  /** Settles when its turn has started, or will not; with a refusal if it could not. */
  readonly outcome = Promise.withResolvers<FireOutcome>()
  readonly #begun = Promise.withResolvers<void>()
  /** Resolves with the end of its turn; `parked`: it waits for a person. */
  readonly end = Promise.withResolvers<TurnEnd | 'parked'>()
  readonly #settled = Promise.withResolvers<TurnEnd>()
  /** Resolves when it is over and recorded. */
  readonly over = Promise.withResolvers<void>()
  /** Whether a person has to allow it first, also where its sender was told before that its turn is certain. */
  isHeld = false

  /** Resolves when those whom its end concerns have been told; it is stored until then. */
  told: Promise<void> = Promise.resolve()

  constructor(fire: Fire) {
    this.fire = fire
    this.outcome.promise.catch(ignored('most senders do not wait'))
  }

  /** The end of its turn. */
  get settled(): Promise<TurnEnd> {
    return this.#settled.promise
  }

  /** Resolves when the agent has its turn, or never will. */
  get begun(): Promise<void> {
    return this.#begun.promise
  }

  /** Its turn has ended, or never begins. */
  settle(end: TurnEnd): void {
    this.#begun.resolve()
    this.#settled.resolve(end)
    this.end.resolve(end)
  }

  /** It is over, and waits for a person as a wake. */
  hold(id: string): void {
    this.isHeld = true
    this.#begun.resolve()
    this.outcome.resolve({ kind: 'held', id })
  }

  /** The agent has its turn. */
  begin(): void {
    this.#begun.resolve()
    this.started()
  }

  /** Its sender need not wait longer: the ids of its turn are certain. */
  started(): void {
    const { conversationId, run } = this.fire
    this.outcome.resolve({ kind: 'started', conversationId, run })
  }
}
