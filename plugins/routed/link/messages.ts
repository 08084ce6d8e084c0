import type { TranslatedProtocol } from '../translate/translated.js'

/** A model in the table. */
export interface TableModel {
  readonly id: string
  readonly label: string
  readonly maxOutput?: number
}
/** A provider or a model server in the table. */
export interface TableProvider {
  readonly id: string
  readonly protocol: TranslatedProtocol
  /** Where its calls are, such as `…/v1` of `…/v1/messages`. */
  readonly base: string
  readonly models: readonly TableModel[]
  /** This machine runs its models. */
  readonly local: boolean
  /** Its accounts are leased by the request; a model server has none. */
  readonly leased: boolean
}
/** What one run may ask. */
export interface TableGrant {
  readonly id: string
  /** Of its bearer. */
  readonly hash: string
  readonly provider: string
  /** It asks on one account, and on no other when that refuses. */
  readonly named: boolean
}
/** What the process serves. It holds no credential. */
export interface RoutingTable {
  readonly providers: readonly TableProvider[]
  readonly grants: readonly TableGrant[]
}

/** A credential for one request. */
export interface LeasedRequest {
  /** Left out: a model server, which has no accounts. */
  readonly lease?: string
  readonly account?: string
  readonly headers: { readonly [name: string]: string }
  /** The credential can be renewed when it is refused. */
  readonly renewable: boolean
  /** The request passes the privacy shield before it is sent. */
  readonly masks: boolean
  /** What the daemon listens on now, which no server that somebody names may be. */
  readonly listeners: readonly { readonly host: string; readonly port: number }[]
}

/** What the process asks the daemon, and what it is answered. */
export interface LinkCalls {
  lease(input: { grant: string; model: string; besides: readonly string[] }): LeasedRequest
  renew(input: { grant: string; lease: string; account: string; refused: string }): LeasedRequest
  /** An account refused: it is known before the next one is leased. */
  refused(input: {
    grant: string
    lease: string
    account: string
    status: number
    message: string
    resetsAt?: number
  }): Record<string, never>
  mask(input: { grant: string; account?: string; texts: readonly string[]; binary: boolean }): {
    texts?: readonly string[]
    tokens?: readonly { readonly token: string; readonly value: string }[]
  }
}
export type LinkCall = keyof LinkCalls
export type LinkInput<C extends LinkCall> = Parameters<LinkCalls[C]>[0]
export type LinkOutput<C extends LinkCall> = ReturnType<LinkCalls[C]>

/** Tokens of one answer, for the run of its bearer. */
export interface CountedTokens {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}
/** What the process tells the daemon. */
export type ProcessNews =
  | { readonly news: 'listening'; readonly port: number }
  | { readonly news: 'begun' }
  | {
      readonly news: 'over'
      readonly grant: string
      readonly failed: boolean
      readonly retried: number
      /** It gives back this lease. */
      readonly lease?: string
      readonly account?: string
      /** Left out: the provider did not tell. */
      readonly tokens?: CountedTokens
      /** The headers of the answer, for limits. */
      readonly headers?: { readonly [name: string]: string }
    }
  | {
      readonly news: 'restored'
      readonly grant: string
      readonly restored: { readonly [token: string]: number }
      readonly unrestored: number
    }
  | { readonly news: 'ask'; readonly id: number; readonly call: LinkCall; readonly input: object }

/** A refusal of the daemon, as it is passed on. */
export interface LinkRefusal {
  readonly status: number
  readonly message: string
  readonly retryAfter?: number
}
/** What the daemon tells the process. */
export type DaemonNews =
  | { readonly news: 'table'; readonly table: RoutingTable }
  | { readonly news: 'answer'; readonly id: number; readonly output: object }
  | { readonly news: 'refusal'; readonly id: number; readonly refusal: LinkRefusal }
