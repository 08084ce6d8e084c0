import type { MissingPart } from '../../../sdk/node/tunnels/machine.js'
import type { Dial } from '../../../sdk/node/network/policy.js'
import type { ExitCountries, ExitLine } from '../contract.js'
import type { ExitSetup } from '../settings/settings.js'

/** An exit whose client was started, by this daemon or one before it. */
export interface StandingExit {
  readonly id: string
  /** Its private folder. */
  readonly folder: string
  readonly pid?: number
  readonly interface?: string
  /** The address of this machine in its tunnel, and the name servers behind it. */
  readonly address?: string
  readonly dns?: readonly string[]
  /** The server, configuration or relay that it uses. */
  readonly server?: string
  /** The country that was asked for. */
  readonly country?: string
}

/** What a client finds out when it comes up. */
export type ClientFacts = Omit<StandingExit, 'id' | 'folder' | 'country'>

/** One start, move or rotation. */
export interface ExitTask<S extends ExitSetup = ExitSetup> {
  readonly id: string
  readonly folder: string
  readonly setup: S
  /** Where it is to come out; undefined: anywhere. */
  readonly country: string | undefined
  readonly put: (line: ExitLine) => void
  readonly log: (line: string) => void
  readonly signal: AbortSignal
  /** Called before one that is up is changed: from then on nothing goes through it until it is proven. */
  readonly begins: () => Promise<void>
  /** Called with what there is of a client before it can change anything. */
  readonly started: (facts: ClientFacts) => Promise<void>
}

/** How an exit gets another address. */
export interface Rotation {
  /** What the exit is now. */
  readonly facts: ClientFacts
  /** Takes the change back, so that the exit is where it was; left out: that cannot be. */
  readonly takeBack?: () => Promise<void>
}

/** What starts, moves and stops the exits of a provider. */
export interface ExitClient<S extends ExitSetup = ExitSetup> {
  /** What this machine lacks. */
  missing(): Promise<MissingPart[]>
  countries(standing: StandingExit | undefined, setup: S | undefined, folder: string): Promise<ExitCountries>
  /** The countries that it knows without asking anybody; undefined: it has to ask. */
  known(standing: StandingExit | undefined, setup: S, folder: string): Promise<readonly string[] | undefined>
  /** Starts the client, and resolves when traffic can go through it. */
  start(task: ExitTask<S>): Promise<ClientFacts>
  /** Moves one that is up. */
  move(task: ExitTask<S>, standing: StandingExit): Promise<ClientFacts>
  /** Refuses (422) a rotation for which there is nothing else to take. */
  assertRotates(task: Pick<ExitTask<S>, 'id' | 'folder' | 'setup' | 'country'>, standing: StandingExit): Promise<void>
  rotate(task: ExitTask<S>, standing: StandingExit, seen: string | undefined): Promise<Rotation>
  /** Keeps an exit at the address that was seen, and answers what it is then. */
  settle?(standing: StandingExit, seen: string): Promise<ClientFacts>
  /** Called with the country in which a server was seen. */
  seen?(standing: StandingExit, country: string): Promise<void>
  /** Ends the client, and removes its interface and routes; what is gone already is fine. */
  stop(standing: StandingExit): Promise<void>
  /** Whether the client and its interface are there; why not, otherwise. */
  lost(standing: StandingExit): Promise<string | undefined>
  /** Why an exit that is up has to be stopped; undefined: it is as it was left. */
  leak(standing: StandingExit): Promise<string | undefined>
  /** Goes on with one that a daemon before this one started. */
  resume(standing: StandingExit): Promise<void>
  /** Connects to targets through it. */
  dial(standing: StandingExit): Dial
  /** The daemon stops, and the clients go on. */
  leave?(): void
}
