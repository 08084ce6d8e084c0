import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { Count, Millis, Ok } from '../../sdk/types.js'
import type { CapabilityStatus, KindEntry, KindStep } from '../capabilities/contract.js'

/** The id of an exit: that of its connection of kind `exit`. */
export type ExitId = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,59}$'>

/** Who carries the traffic out: the onion network, free servers of OpenVPN, or servers of one's own. */
export type ExitProvider = 'onion_router' | 'public_vpn_pool' | 'wireguard'

/**
 * `starting`: its client starts, moves or stops; `unavailable`: this machine lacks something that it needs; `failed`:
 * the last start was not proven, or its client is gone.
 */
export type ExitState = 'up' | 'starting' | 'down' | 'unavailable' | 'failed'

/** A country by its two letters (ISO 3166-1). Answers have capitals. */
export type Country = string & tags.Pattern<'^[A-Za-z]{2}$'>

/** An exit as the operating system has it now. */
export interface ExitLink {
  id: ExitId
  provider: ExitProvider
  state: ExitState
  /** Its proxy, the same whatever its country. Its port also takes HTTP CONNECT, and HTTP with whole addresses. */
  proxy: string
  /** The country that is asked for; left out: the provider chooses. */
  country?: Country
  /** The country from which the last check saw it come. */
  observedCountry?: Country
  /** The address that the world saw then. */
  ip?: string
  checkedAt?: Millis
  /** Its network interface, where it has one. */
  interface?: string
  /** Since when it is up. */
  since?: Millis
  /** It is started with the daemon. */
  autoStart: boolean
  /** Why it failed or is unavailable, or a note. */
  detail?: string
}
export interface ExitList {
  links: ExitLink[]
}
/** A country in which an exit can come out. */
export interface ExitCountry {
  country: Country
  countryName: string
  /** 0 in the built-in list, which has no counts. */
  servers: Count
  /** Its part of what the provider can carry, from 0 to 1. */
  share: number
}
export interface ExitCountries {
  countries: ExitCountry[]
  /** The list is the provider's own, and fresh; false: a stored or built-in one. */
  live: boolean
}
/** What an address outside saw of a request through an exit. */
export interface ExitObservation {
  ip: string
  /** Left out: nobody knows the country of the address. */
  country?: Country
  countryName?: string
}

/** What its client or the daemon says. */
export interface ExitLogLine {
  kind: 'log'
  message: string
}
/** The step that begins. */
export interface ExitStepLine {
  kind: 'step'
  step: 'catalogue' | 'dial' | 'tunnel' | 'proxy' | 'check'
}
/** Where it came out. */
export interface ExitObservedLine {
  kind: 'observed'
  ip: string
  country?: Country
  countryName?: string
}
/** It is up, and proven. */
export interface ExitResultLine {
  kind: 'result'
  ok: true
  link: ExitLink
}
export type ExitLine = ExitLogLine | ExitStepLine | ExitObservedLine | ExitResultLine

/** How group capabilities checks, starts, asks, drops and renames the connections of kind `exit`. */
export interface ExitKindCalls {
  /** Checks what an exit is set up with. 409: another exit has its port; 422: it cannot be used. */
  'exit.kindCheck'(input: KindEntry): Ok
  /** Starts an exit that was up with what is new of it; another one is started by hand. */
  'exit.kindApply'(input: KindEntry): Stream<KindStep>
  /** Says how an exit is, for the list of connections. */
  'exit.kindStatus'(input: { id: string }): CapabilityStatus
  /** Stops an exit before its connection is removed. */
  'exit.kindRelease'(input: { id: string }): Ok
  /** Removes everything that is kept of an exit. */
  'exit.kindForget'(input: { id: string }): Ok
  /** Carries what is kept of an exit to another id. 409: it is up. */
  'exit.kindRename'(input: { id: string; to: string }): Ok
}

/** Lets chosen traffic leave from another country: exits are started, moved, checked and stopped. */
export interface ExitCalls extends ExitKindCalls {
  /**
   * List every exit that is set up, in the order in which they were added, with its state now.
   *
   * The state is that of clients and interfaces on this machine. Nothing is sent through an exit by listing.
   */
  'GET /exit'(): ExitList

  /**
   * List the countries in which an exit can come out, best supplied first.
   *
   * It need not be up. Where the provider does not answer, a stored or built-in list is shown.
   *
   * - 404: no such exit
   */
  'GET /exit/{id}/countries'(input: { id: ExitId }): ExitCountries

  /**
   * Start an exit in its country, and watch each step until it is proven where it comes out.
   *
   * One that is up stays as it is. The start goes on if the reader leaves. A start that fails ends with `error` after
   * everything of it was stopped.
   *
   * - 404: no such exit
   * - 409: it is starting, moving or stopping, or another program has the port of its proxy
   * - 422: what is stored of it cannot be used, or the provider has no server in its country
   * - 424: a list, a server or every check address did not answer, or it came out in another country; this ends the
   *   stream
   * - 501: this machine lacks a program, a device or a privilege; the message says how to get it
   * - 503: the store of secrets is locked
   */
  'POST /exit/{id}/start'(input: { id: ExitId }): Stream<ExitLine, { link: ExitLink }>

  /**
   * Move an exit to a country, and watch each step until it is proven there; one that is down is started.
   *
   * Connections through it are closed. The country is kept for the next start of the daemon. An exit that comes out
   * elsewhere is stopped.
   *
   * - 404: no such exit
   * - 409: it is starting, moving or stopping, or another program has the port of its proxy
   * - 422: what is stored of it cannot be used, or the provider has no server in this country: the message lists those
   *   that it has
   * - 424: a list, a server or every check address did not answer, or it came out in another country; this ends the
   *   stream
   * - 501: this machine lacks a program, a device or a privilege; the message says how to get it
   * - 503: the store of secrets is locked
   */
  'POST /exit/{id}/use'(input: {
    id: ExitId
    /** Left out: the provider chooses. */
    country?: Country
  }): Stream<ExitLine, { link: ExitLink }>

  /**
   * Take another address in the same country: of another server or configuration.
   *
   * An exit of the onion network changes at most once in 10 s: the call waits. Where the address stays the same, the
   * stream ends with `error` and the exit stays up.
   *
   * - 404: no such exit
   * - 409: it is not up, or it is moving
   * - 422: there is only one server or configuration in this country
   * - 424: the address is still the same, or the new one was not proven; this ends the stream
   * - 503: the store of secrets is locked
   */
  'POST /exit/{id}/rotate'(input: { id: ExitId }): Stream<ExitLine, { link: ExitLink }>

  /**
   * Ask a check address through an exit which address and country it sees now.
   *
   * Where that is another country than the one asked for, the answer says so and `detail` of the exit too.
   *
   * - 404: no such exit
   * - 409: it is not up
   * - 424: no check address answered; the message has why each did not
   * - 429: more than 10 checks in a minute
   */
  'POST /exit/{id}/check'(input: { id: ExitId }): ExitObservation

  /**
   * Stop an exit, and answer once its client, interface, routes and proxy are gone.
   *
   * An exit that is down is fine, and a start in progress ends.
   *
   * - 404: no such exit
   * - 500: its client is still there after it was killed
   */
  'POST /exit/{id}/stop'(input: { id: ExitId }): Ok

  /** The port of an exit that is proven now: one that is down is started. */
  'exit.proxyFor'(input: { id: string }): { port: number & tags.Type<'uint32'> }

  /** The ports of all exits that are up, for the networks of conversations. */
  'exit.proxies'(): { ports: (number & tags.Type<'uint32'>)[] }
}

/** An exit came up, was moved or was stopped. */
export interface ExitEvents {
  'exit.changed': { id: string }
}

export const exitContract: Contract<ExitCalls> = {
  schema: () => typia.json.application<ExitCalls>(),
  request: typia.misc.createValidatePrune<Requests<ExitCalls>>(),
  reply: () => typia.createValidate<Replies<ExitCalls>>(),
}
