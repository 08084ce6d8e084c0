/** A dial of a tunnel. */
export interface TunnelDial<S> {
  readonly id: string
  readonly interface: string
  /** The private folder of the tunnel. */
  readonly folder: string
  readonly settings: S
  /** A code for this dial alone. */
  readonly otp?: string
  readonly log: (line: string) => void
  readonly signal: AbortSignal
  /** Called with the process of the client before it can change anything. */
  readonly started: (pid: number) => Promise<void>
}
/** What is known of a tunnel when it is connected. */
export interface Dialled {
  readonly dns: readonly string[]
  /** The address of this machine in it, where the client says it. */
  readonly address?: string
}
/** A tunnel that was dialled, by this daemon or one before it. */
export interface Standing {
  readonly id: string
  readonly interface: string
  readonly folder: string
  readonly pid?: number
}
/** How the client of a tunnel is. */
export interface ClientHealth {
  /** It has no connection to its gateway, and tries to have one again. */
  readonly trying?: boolean
  readonly handshakeAt?: number
}

/** The program that dials the tunnels of a provider. */
export interface TunnelClient<S> {
  /** Dials, and resolves when the tunnel is connected. */
  dial(dial: TunnelDial<S>): Promise<Dialled>
  /** Ends the client, and removes its interface and routes. What is gone already is fine. */
  drop(standing: Standing): Promise<void>
  /** Asks the client of a tunnel whose interface exists. */
  health(standing: Standing): Promise<ClientHealth>
  /** Whether a tunnel whose interface exists has ended for good. */
  isOver?(standing: Standing): Promise<boolean>
  /** Goes on with a tunnel that a daemon before this one dialled. */
  resume?(standing: Standing, settings: () => Promise<S | undefined>): Promise<void>
  /** The daemon stops: its connections to clients end, and the clients go on. */
  leave?(): void
}
