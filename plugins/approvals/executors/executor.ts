import type { SafetySubject } from '../../safety/contract.js'
import type { StoredApproval } from '../stored-approval.js'

/** What an outside system answered. */
export interface CarriedOut {
  readonly url?: string
  readonly result?: string
}

/** Carries out one kind of item. */
export interface Executor {
  /** Items of one lane are carried out one after another. */
  readonly lane: string
  /** What the safety policy decides about it. */
  readonly subjects: readonly SafetySubject[]
  /** The conversation that does it; left out: the sandbox does it itself. */
  readonly turn?: { readonly conversationId: string; readonly run: string }
  /** Does it once; throws a refusal where nothing went out, and `UnknownOutcome` where something may have. */
  carryOut(idempotencyKey: string, signal: AbortSignal): Promise<CarriedOut>
}

/** Why nothing can carry an item out, as a sentence. */
export interface Missing {
  readonly problem: string
}

/** Finds what carries out an item. */
export type FindExecutor = (item: StoredApproval) => Promise<Executor | Missing>

/** It may have gone out. */
export class UnknownOutcome extends Error {
  override readonly name = 'UnknownOutcome'
}
