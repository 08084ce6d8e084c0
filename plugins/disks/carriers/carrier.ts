import type { DiskMissing, DiskVia } from '../contract.js'
import type { DiskEntry, DiskSecrets } from '../entry.js'

/** A share with everything that is needed to reach its server. */
export interface ReachedShare {
  readonly entry: DiskEntry
  readonly secrets: DiskSecrets
  /** A checked address of the server. */
  readonly address: string
  /** The pinned host key of an ssh server, such as `ssh-ed25519 AAAA…`. */
  readonly hostKey?: string
  /** The pinned certificate, where no authority vouches for it; PEM. */
  readonly certificate?: string
  readonly signal: AbortSignal
}

/** Everything that a carrier mounts a share with. */
export interface MountPlan extends ReachedShare {
  /** The empty folder to mount at. */
  readonly mountPoint: string
  /** A private folder, which is removed when the share is unmounted. */
  readonly folder: string
  /** Where the carrier may cache; it survives an unmount. */
  readonly cache: string
  readonly readOnly: boolean
}

/** A carrier that was started: the mount may not be there yet. */
export interface StartedCarrier {
  /** What it wrote until now. */
  output(): Promise<string>
  /** Settles when it ended; only of one that serves the mount in the foreground. */
  readonly ended?: Promise<unknown>
  /** Ends it, with its children. */
  end(): Promise<void>
}

/** A way to mount shares of some provider. */
export interface DiskMounter {
  readonly via: DiskVia
  /** What this machine lacks for it. */
  missing(): Promise<DiskMissing[]>
  /** Why it does not suit a share, whatever the machine has; undefined: it does. */
  unsuited?(entry: DiskEntry): string | undefined
  /**
   * Starts it.
   *
   * @throws A refusal `dependency` with the server's words, where it tries the server itself and fails.
   */
  start(plan: MountPlan): Promise<StartedCarrier>
  /** Waits until what was written through it has reached the server; false: not before the signal was aborted. */
  flush?(cache: string, signal: AbortSignal): Promise<boolean>
  /** Removes what its mount left on the server, and says so. */
  tidy?(share: ReachedShare): Promise<string | undefined>
}
