import type { tags } from 'typia'
import type { Ok } from '../../../sdk/types.js'
import type { RepoName } from '../repositories/contract.js'

/** The name of an app: its folder in the apps folder of its repository. */
export type AppName = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-z][a-z0-9-]*$'>

/** A port of TCP that an app listens on. */
export type AppPort = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<65535>

/** Something that can be scaffolded. */
export interface AppTemplate {
  key: string
  label: string
  description: string
  kind: 'app' | 'repo'
}
/** What can be scaffolded, and where it comes from. */
export interface TemplateList {
  templates: AppTemplate[]
  /** `built-in`, or the address of a git repository. */
  source: string
  /** The commit, branch or tag of that repository. */
  ref?: string
}
/** A runnable app of a repository. */
export interface AppSummary {
  app: string
  /** The framework it is made with, where its manifest names one. */
  kind?: string
  /** The address at which everybody who knows it reaches the app, while it runs. */
  previewUrl?: string
  running: boolean
  /** Its port answers HTTP or HTTPS, with any status. */
  healthy: boolean
  /** The port that it listens on. */
  port?: AppPort
  /** Its terminal, while it runs. */
  session?: string
}
/** The apps of a repository. */
export interface AppList {
  apps: AppSummary[]
}
/** An app to be made. */
export interface NewApp {
  template: string & tags.MinLength<1> & tags.MaxLength<60>
  name: AppName
}
/** A terminal that something was started in. */
export interface ScaffoldSession {
  ok: true
  session: string
}
/** An app that was started. */
export interface StartedApp {
  ok: true
  session: string
  /** The port it listens on, or before that the one it was asked to listen on (`PORT`). */
  port: AppPort
  /** The address at which everybody who knows it reaches the app; until it listens, a page that waits for it. */
  previewUrl?: string
}

/** How a package is run, and what must be done first. */
export interface RunPlan {
  /** The package manager that runs its scripts. */
  manager: string
  /** Whether the package manager is on this machine. */
  present: boolean
  /** Its dependencies are being installed. */
  installing: boolean
  /** Its last install failed. */
  failed: boolean
  /** What installs its dependencies; empty: they are there. */
  steps: { cwd: string; program: string[] }[]
}

/** The apps of repositories. */
export interface AppCalls {
  /**
   * List what can be scaffolded: the built-in templates, or those of the git repository that
   * `.sandbox/config/templates.json` names (`{ "source": …, "ref": … }`).
   *
   * Such a file may have come with the code: it counts once the owner ran `sandbox config accept` on the machine. The
   * repository is read then, once for each source and ref; this call asks no server. Its `templates.json` lists its
   * templates: `{ "templates": [{ "key", "label", "description", "kind": "app", "path" }] }`.
   *
   * - 422: `.sandbox/config/templates.json` or the manifest of the source is malformed
   * - 424: the source cannot be reached
   * - 501: git is missing
   * - 503: the source is being read
   */
  'GET /workspace/templates'(): TemplateList

  /**
   * Add apps to a repository, in its `apps/` or the apps folder it has, and install their dependencies.
   *
   * The folders are there when it answers, all or none of them; the terminal `panel-<repo>--add_apps` shows them and
   * runs the install. A second call with the same apps while that runs answers the running terminal.
   *
   * - 400: a bad name, or one that is given twice
   * - 404: no such repository or template
   * - 409: a folder of that name exists, or other apps are being added
   * - 413: the disk is full
   * - 422: `.sandbox/config/templates.json` or the manifest of the source is malformed
   * - 424: the source of the templates cannot be reached
   * - 429: 64 sessions of programs run
   * - 501: a program is missing; the message names it
   */
  'POST /workspace/repos/{repo}/apps'(input: {
    repo: RepoName
    apps: NewApp[] & tags.MinItems<1> & tags.MaxItems<20>
  }): ScaffoldSession

  /**
   * List the runnable apps of a repository: folders of its apps folder whose manifest has a `dev` or `start` script.
   *
   * - 404: no such repository, or outside the caller's areas
   */
  'GET /workspace/repos/{repo}/apps'(input: { repo: RepoName }): AppList

  /**
   * Start the development server of an app in the terminal `panel-<repo>--<app>`, on a free port (`PORT`).
   *
   * Dependencies that are missing are installed first, in the same terminal. It answers before the server does; a
   * running app is answered as it is.
   *
   * - 404: no such repository or app
   * - 409: its dependencies are being installed, or something else runs in a terminal of that name
   * - 429: 64 sessions of programs run
   * - 501: the package manager is missing; the message names it
   */
  'POST /workspace/repos/{repo}/apps/{app}/start'(input: { repo: RepoName; app: AppName }): StartedApp

  /**
   * End an app and every process in its terminal: SIGTERM, and SIGKILL after 5 s.
   *
   * Ending one that does not run succeeds.
   *
   * - 404: no such repository or app
   */
  'POST /workspace/repos/{repo}/apps/{app}/stop'(input: { repo: RepoName; app: AppName }): Ok

  /** How the package in a folder of a repository is run; both are real paths, `.` is the root. 404: it has none. */
  'installs.plan'(input: { repo: string; path: string }): RunPlan
}
