import type { tags } from 'typia'
import type { Count } from '../../../sdk/types.js'
import type { RepoName } from '../repositories/contract.js'

/** The languages whose package managers are known. */
export type Ecosystem = 'node' | 'python' | 'go' | 'rust' | 'ruby' | 'php' | 'jvm'
/**
 * `ready`: its dependencies are installed; `installing`: they are being installed, or wait for that; `stale`: a part is
 * missing or older than the lock file says, or the last install failed; `unsupported`: its package manager is not on
 * this machine.
 */
export type SetupState = 'ready' | 'installing' | 'needs-setup' | 'unsupported' | 'stale'
/** A folder of the workspace; empty for the root. */
export type ProjectDir = string & tags.MaxLength<500>

/** A project of the workspace, and whether its dependencies are installed. */
export interface ProjectSetup {
  dir: string
  ecosystem: Ecosystem
  manager: string
  /** What installs its dependencies. */
  command: string
  /** The file that decided. */
  evidence: string
  state: SetupState
  /** How many of its declared dependencies are not there. */
  missing?: Count
}
/** The projects of the workspace. */
export interface ProjectList {
  projects: ProjectSetup[]
}
/** The terminal in which a project is installed. */
export interface InstallSession {
  dir: string
  session: string
}
/** Which projects wait for their install, and the terminals of all that are installed. */
export interface QueuedInstalls {
  queued: string[]
  sessions: InstallSession[]
}
/** The command that tests a folder. */
export interface TestCommand {
  dir: string
  command: string
}
/** A test run. */
export interface StartedTests {
  ok: true
  session: string
  commands: TestCommand[]
}

/** Which projects the workspace has: their dependencies, and their tests. */
export interface ProjectCalls {
  /**
   * List the projects of the workspace, and say whether their dependencies are installed.
   *
   * It looks 4 folders deep for the topmost manifest of each language, anew in each repository: what lies below one is
   * installed with it. Of node and python projects it looks for every declared dependency; `missing` counts those that
   * are not there.
   */
  'GET /workspace/setup'(): ProjectList

  /**
   * Install the dependencies of projects, each in a terminal of its own, one at a time for each package manager.
   *
   * It answers at once: the terminals `panel-<dir>--install` show the progress, and installs continue when the daemon
   * restarts. Projects that are ready, queued already or unsupported are left out of `queued`; `sessions` has the
   * terminals of all that are queued or running. A lock file is respected where it agrees with its manifest. Programs
   * of somebody limited to areas see nothing else of the workspace.
   *
   * - 403: the folder may be read only, or this machine has no wall that keeps programs to the caller's areas
   * - 404: no project in that folder, or outside the caller's areas
   * - 501: a terminal cannot be opened on this machine: a program is missing
   */
  'POST /workspace/setup/install'(input: { dirs: ProjectDir[] & tags.MinItems<1> & tags.MaxItems<50> }): QueuedInstalls

  /**
   * Run the tests of folders of a repository, one after another, in the terminal `panel-<repo>--<session>`.
   *
   * It answers at once. The command is the manifest's own: its `test` script, pytest, cargo test, go test. A run of
   * that name that is not over is answered as it is. The exit code of the terminal is not 0 when a test failed.
   * Programs of somebody limited to areas see nothing else of the workspace.
   *
   * - 403: the folder may be read only, or this machine has no wall that keeps programs to the caller's areas
   * - 404: no such repository or folder, or outside the caller's areas
   * - 409: something else runs in a terminal of that name
   * - 422: no test command is known for a folder
   * - 429: 64 sessions of programs run
   * - 501: a program is missing; the message names it
   */
  'POST /workspace/repos/{repo}/tests'(input: {
    repo: RepoName
    session: string & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9_-]*$'>
    /** From the root of the repository; empty for that itself. */
    dirs: (string & tags.MaxLength<4096>)[] & tags.MinItems<1> & tags.MaxItems<50>
  }): StartedTests
}

/** The events about projects that other groups can subscribe to. */
export interface ProjectEvents {
  /** An install failed; `attempt` counts its failures in a row. */
  'deps.broken': { project: string; command: string; exitCode?: number; attempt: number; logTail: string }
  /** A failed install works again. */
  'deps.fixed': { project: string; command: string; attempt: number }
}
