import type { ExtensionManifest } from './manifest/manifest.js'

export type BackendState = 'running' | 'error' | 'absent' | 'incompatible' | 'starting' | 'stopped'

/** The beginning of the reason of a backend that crashed too often. */
export const QUARANTINED = 'quarantined: '

/** The status of a backend, with the reason. */
export interface BackendStatus {
  state: BackendState
  detail?: string
}

/** One approved extension, as its backend is started from it. */
export interface RunnableExtension {
  /** `<publisher>.<name>` */
  id: string
  version: string
  source: 'builtin' | 'installed' | 'workspace'
  /** Its code, which the backend reads. */
  dir: string
  /** Its data, which the backend writes. */
  dataDir: string
  /** Changes with the code: a commit or a hash of the files. */
  revision: string
  manifest: ExtensionManifest
}

/** Runs the backends of extensions. */
export interface ExtensionRuntime {
  /** Start its backend, or restart it with this code; ends a quarantine. Does not wait for `activate`. */
  start(extension: RunnableExtension): Promise<void>
  /** Stop its backend; resolves when none of its processes is left. */
  stop(id: string, why: string): Promise<void>
  /** Undefined for an extension that was never started. */
  status(id: string): BackendStatus | undefined
  /** What a running backend asked for and does not get, as sentences. */
  problems(id: string): string[]
  /** Its settings have changed. */
  settingsChanged(id: string, keys: string[]): void
  /** Stop all of them. */
  close(deadline: number): Promise<void>
}

/** The information about extensions for the runtime of backends. */
export interface ExtensionRecords {
  /** Why `/x/<id>/…` is refused: unknown, switched off, waiting for approval; undefined if it may run. */
  refused(id: string): 'absent' | 'off' | 'pending' | undefined
  /** Values of its settings with defaults; secret ones as references `{{secret:ext/<id>/<key>}}`. */
  settings(id: string): Promise<Record<string, string | number | boolean>>
  /** Called when it used a declared entry. */
  used(id: string, entry: string): void
  /** A backend or process of it changed its state. */
  changed(id: string): void
}
