import type { RuntimeStates } from '../../agent/contract.js'
import type { BootProgress, Program } from '../../../sdk/kernel.js'
import type { Me } from '../access/contract.js'

/** What this daemon is and can do. */
export interface Info {
  /** The image that the daemon was started from, as this image says; left out: it says nothing, or there is none. */
  image?: string
  version?: string
  /** The same as in `/health`. */
  sandboxId: string
  /** Minted at the first start on a workspace; a new one means: drop every cache. */
  workspaceId: string
  /** Hash of the running code. */
  build: string
  /** `info.version` of the OpenAPI document. */
  contract: string
  /** Operation ids of every call this daemon serves, sorted. */
  routes: string[]
  /** Operation id to a fingerprint of its input and output types. */
  shapes: { [id: string]: string }
  /** What turns and terminals run behind; `none`: they have the rights of the user who runs the daemon. */
  wall: 'bwrap' | 'unshare' | 'none'
  programs: Program[]
  /** Whether each provider could be used, a minute ago at most; left out while starting, and for tokens. */
  runtimes?: RuntimeStates
  boot: BootProgress
  /** The address that links name: the public one where one is configured, else that of this request. */
  base: string
  me: Me
}
/** One problem in a file that people edit by hand. */
export interface ManifestProblem {
  /**
   * The whole file, an unknown key, an invalid entry, or an entry that came with the code and that no maintainer
   * accepted.
   */
  kind: 'unreadable' | 'unknownKey' | 'invalidEntry' | 'unaccepted'
  detail: string
  /** The nearest name that is known. */
  suggestion?: string
}
/** A file that people edit by hand, with what is wrong in it. */
export interface ManifestProblemReport {
  /** From the workspace root, such as `.sandbox/config/settings.json`. */
  path: string
  problems: ManifestProblem[]
}

/** What this daemon is, and what it cannot honour. */
export interface InfoCalls {
  /**
   * Say what this daemon is, including the calls it serves.
   *
   * A newer client learns from it what it can offer. Answered from memory, also while the daemon is still starting.
   */
  'GET /info'(): Info

  /**
   * List what the sandbox cannot honour in the files that people edit by hand.
   *
   * The files are read again for it. Those without problems are not listed.
   */
  'GET /system/manifest-problems'(): ManifestProblemReport[]
}
