import type { Api } from './api.js'
import type { Args, Input, Reply } from './contract.js'
import type { Off, RouteEntryOf } from './node/extension/host.js'

/** A file that a viewer of the extension draws. */
export interface UiFile {
  /** From the workspace's root. */
  readonly path: string
  readonly size: number
  /** For viewers whose manifest says `"fetch": "text"`. */
  readonly text?: string
  /** For viewers whose manifest says `"fetch": "blob"`: the whole file, at most 32 MiB. */
  readonly bytes?: Uint8Array
}

/** What a page is shown for. */
export interface UiSurface {
  /** The id of the view, side view or viewer in the manifest; empty for a page that only runs commands. */
  readonly view: string
  /** The conversation that a side view is beside. */
  readonly conversation?: string
  /** The repository of a view with the surface `directory`. */
  readonly repo?: string
  /** The path of the file that is open beside a side view, from the workspace's root. */
  readonly path?: string
  /** The run that is shown beside a side view. */
  readonly run?: string
  /** The file that a viewer draws. */
  readonly file?: UiFile
}

/** Values of the extension's settings by key; secret ones are left out. */
export interface UiSettings {
  readonly [key: string]: string | number | boolean
}

/** The colours of the console. */
export type UiTheme = 'light' | 'dark'

/** The events that a page may subscribe to, by name. */
export interface UiEvents {
  /** The colours changed. */
  theme: UiTheme
  /** Names of `contributes.files[].invalidates` whose files changed. */
  files: readonly string[]
  /** The page is shown for something else now. */
  surface: UiSurface
  /** The settings after a change. */
  settings: UiSettings
  /** Somebody chose this command of `contributes.commands`. */
  command: string
}

/** A request to a route of the extension's own backend. */
export interface UiRequest {
  /** Default: `POST` with a body, else `GET`. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Sent as JSON. */
  readonly body?: unknown
}

/**
 * Everything a page of an extension can use. `activate(host)` gets it.
 *
 * The page runs in a frame of its own without an origin: no storage, no network, no access to the console. A method
 * that fails rejects with an error that says why.
 */
export interface UiHost {
  /** `<publisher>.<name>` */
  readonly id: string
  /** The view that is open, and the conversation, run or file beside it. */
  readonly surface: UiSurface
  readonly theme: UiTheme
  readonly settings: UiSettings
  /**
   * Makes a call that `permissions.sandbox` names, with the rights of the person who looks; calls that stream are
   * refused. At most 20 at once.
   */
  call<E extends RouteEntryOf>(entry: E, ...args: Args<Input<Api, E>>): Promise<Reply<Api, E>>
  /** Asks a route of the own backend, such as `/hello` for `/x/<id>/hello`: gives JSON as its value, else the text. */
  fetch(path: string, request?: UiRequest): Promise<unknown>
  /** Reads bytes of the file that a viewer draws, at most 4 MiB at once; `to` is exclusive. */
  read(from: number, to: number): Promise<Uint8Array>
  on<K extends keyof UiEvents>(event: K, listener: (value: UiEvents[K]) => void): Off
  /** Shows a count at a view whose manifest says `"badge": true`; 0 shows none. */
  badge(count: number): void
  /** Sets the height of the frame in pixels, where the console does not give it the whole page. */
  resize(height: number): void
  /** Goes to a place of the console, such as `#/c/first`; at most once a second. */
  open(place: string): void
}

/** The module that the manifest's `entry` names. */
export interface UiModule {
  activate(host: UiHost): void | Promise<void>
}
