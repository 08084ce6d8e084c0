import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok } from '../../sdk/types.js'
import type { TcpPort } from '../system/contract.js'

/** A repository: `root`, or its path from the workspace root. */
export type PanelRepo = string

/** Something of a repository that answers HTTP or HTTPS on this machine. */
export interface PanelServer {
  url: string
  /** The folder that it runs in, from the root of the repository; left out: that itself, or not known. */
  dir?: string
  /** The terminal that it runs in. */
  session?: string
}

/** The development server of a repository, and what the repository holds. */
export interface Panel {
  repo: PanelRepo
  /** It has a package with a `dev` script, in `operator/` or in its root. */
  hasPanel: boolean
  /** The terminal of its development server runs. */
  running: boolean
  /** Something of the repository answers HTTP or HTTPS with any status, also what somebody started by hand. */
  healthy: boolean
  /** The port that the development server listens on, or before that the one that it was asked to listen on. */
  port?: TcpPort
  /** The address at which everybody who knows it reaches the development server, while it runs. */
  previewUrl?: string
  /** Its terminal, while it runs. */
  session?: string
  startedAt?: Millis
  /** How the last run ended, if it ended by itself. */
  exitCode?: number
  /** Everything of the repository that answers, by port. */
  servers: PanelServer[]
  /** `desired-state`: it describes what should be; `intent`: it says what is wanted; `app`: it has a panel. */
  role?: 'intent' | 'desired-state' | 'app'
  /** It has a file or folder that says how it is deployed. */
  deployConfig: boolean
  /** It has a folder `desired-state`. */
  desiredState: boolean
  /** It has a folder `directory-ui`. */
  directoryUi: boolean
  /** It is a workspace of packages. */
  monorepo: boolean
  vitest: boolean
  /** It has a folder `user-stories`. */
  userStories: boolean
  /** It has a folder `docs`. */
  docs: boolean
}

/** The development servers of repositories. */
export interface PanelsCalls {
  /**
   * List the repositories of the workspace, with their development servers and what answers in them.
   *
   * The ports of the machine are read once, and each is asked for at most 1.5 s; answers count for 2 s. It starts
   * nothing.
   *
   * - 501: this system has neither `/proc` nor `lsof`
   */
  'GET /panels'(): { panels: Panel[] }

  /**
   * Read the panel of one repository.
   *
   * With `wait` it answers as soon as the panel is in that state, its terminal has ended, or the time is over: compare
   * what you get.
   *
   * - 404: no such repository, or outside the caller's areas
   * - 429: 20 waits of this caller
   * - 501: this system has neither `/proc` nor `lsof`
   */
  'GET /panels/{repo}'(input: {
    repo: PanelRepo
    wait?: 'healthy' | 'stopped'
    /** How long to wait; default: 30 s. */
    waitMs?: Count & tags.Maximum<60000>
  }): Panel

  /**
   * Start the development server of a repository in the terminal `panel-<repo>`, on a port of its own (`PORT`).
   *
   * It answers before the server does. Dependencies that are missing are installed first, in the same terminal. A
   * server that runs is answered as it is; with `restart` it is ended first and gets the same port.
   *
   * - 404: no such repository
   * - 409: no package with a `dev` script, its dependencies are being installed or their install failed, or something
   *   else runs in a terminal of that name
   * - 422: the name of the repository has no letter or digit for an address
   * - 429: 64 sessions of programs run
   * - 501: the package manager is missing; the message names it
   */
  'POST /panels/{repo}/start'(input: { repo: PanelRepo; restart?: boolean }): {
    ok: true
    session: string
    port: TcpPort
    /** The address at which everybody who knows it reaches the server; until it listens, a page that waits for it. */
    previewUrl?: string
  }

  /**
   * End the development server of a repository with every process in its terminal: SIGTERM, and SIGKILL after 5 s.
   *
   * It answers when they are gone. Ending one that does not run succeeds; servers that somebody started by hand go on.
   *
   * - 404: no such repository
   */
  'POST /panels/{repo}/stop'(input: { repo: PanelRepo }): Ok
}

export const panelsContract: Contract<PanelsCalls> = {
  schema: () => typia.json.application<PanelsCalls>(),
  request: typia.misc.createValidatePrune<Requests<PanelsCalls>>(),
  reply: () => typia.createValidate<Replies<PanelsCalls>>(),
}
