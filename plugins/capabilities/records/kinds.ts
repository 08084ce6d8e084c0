import type { ActionCarrier, ActionEnd, ConnectionAction } from '../actions/contract.js'
import type { TurnFile } from '../contract.js'
import type { CapabilityStatus, ShownConfig } from './contract.js'

/** A connection with the values of its secret fields: never shown, never logged. */
export interface OpenEntry {
  readonly id: string
  readonly config: ShownConfig
  readonly secrets: { readonly [field: string]: string }
  /** What its program sees beside the system and the workspace. */
  readonly shown?: readonly TurnFile[]
}

/** Carries out actions that a person approved. */
export interface KindActions {
  /** Says what would carry an action out, or why nothing does; it never throws. `asks`: it may ask the other side. */
  check(entry: OpenEntry, action: ConnectionAction, asks: boolean): Promise<Pick<ActionCarrier, 'tool' | 'problem'>>
  /** Does it once. What it throws was not sent. */
  carryOut(
    entry: OpenEntry,
    action: ConnectionAction,
    attempt: { readonly idempotencyKey: string; readonly signal: AbortSignal },
  ): Promise<ActionEnd>
}

/** A kind of connection: what it needs, and what connecting, asking and removing it means. */
export interface KindHandler {
  readonly kind: string
  /** The largest value of a secret field in characters, 65536 unless set. */
  readonly largestSecret?: number
  /** How long connecting may take in ms, 60000 unless set; Infinity: the kind itself ends what goes on and on. */
  readonly applyMs?: number
  /** There can be one connection of it only. */
  readonly singleton?: true
  /** The kinds that must be connected first. */
  readonly requires?: readonly string[]
  /** The fields whose values are secrets. */
  secretFields(config: ShownConfig): readonly string[]
  /** The field that a new secret replaces when none is named. */
  mainSecret(config: ShownConfig): string | undefined
  /** The secret fields that stay as they are when a change leaves them out. */
  readonly keptSecrets?: readonly string[]
  /** Whether the id is that of one of its connections, also where the file lost the entry or gives it another kind. */
  claims?(id: string): Promise<boolean>
  /** Fills in fields that it makes itself, once `check` has passed; `before` are those of the connection it changes. */
  complete?(entry: OpenEntry, before?: ShownConfig): Promise<Pick<OpenEntry, 'config' | 'secrets'>>
  label(config: ShownConfig): string | undefined
  card?(config: ShownConfig): string | undefined
  /** Changes with what the card of an extension makes of the fields: a maintainer saves it again then. */
  mark?(config: ShownConfig): string | undefined
  /** The connection as it is used, where a card stands for its fields; undefined: nothing offers the card. */
  unfold?(entry: OpenEntry): OpenEntry | undefined
  /** The field with the seed of one-time codes; `otp` unless it answers another one. */
  seedField?(config: ShownConfig): string | undefined
  /** Refuses what cannot work, by name and without a value of a secret. */
  check(entry: OpenEntry): Promise<void>
  /**
   * Connects for real and ends what it started.
   *
   * @throws A refusal `dependency` where the other side does not do its part.
   */
  apply(entry: OpenEntry, report: (message: string) => void, signal: AbortSignal): Promise<CapabilityStatus>
  /** Asks how it is; `thorough`: a person asks. It never throws. */
  probe(entry: OpenEntry, signal: AbortSignal, thorough: boolean): Promise<CapabilityStatus>
  /** It was recorded, with these fields. */
  recorded?(entry: OpenEntry): Promise<void>
  /** Called before its record is removed; refuses what cannot be removed now. */
  release?(id: string): Promise<void>
  /** Removes what is kept of it beside the record; also what an attempt to connect left. */
  forget?(id: string): Promise<void>
  /** Carries what is kept of it to another id. */
  rename?(id: string, to: string): Promise<void>
  /** Whether a turn is using it at this moment. */
  busy?(id: string): boolean | Promise<boolean>
  /** Left out: connections of this kind carry no actions out. */
  readonly actions?: KindActions
  /** The tools that agents are offered, when they are known. */
  tools?(id: string): number | undefined
}

/** The state of something that works. */
export const activeStatus = (): CapabilityStatus => ({ state: 'active', checkedAt: Date.now() })

/** The state of something that does not, with the reason as a sentence. */
export const failingStatus = (detail: string, code?: CapabilityStatus['code']): CapabilityStatus => ({
  state: code === 'sign-in' || code === 'rebuild' || code === 'starting' ? 'pending' : 'error',
  detail,
  ...(code && { code }),
  checkedAt: Date.now(),
})
