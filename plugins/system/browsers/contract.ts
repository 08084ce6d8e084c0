import type { tags } from 'typia'
import type { Socket } from '../../../sdk/contract.js'
import type { Count, Millis, Ok, Text } from '../../../sdk/types.js'

/** The name of a browser. */
export type BrowserName = string & tags.Pattern<'^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'>
/** The name of a profile of a browser. */
export type BrowserProfile = string & tags.Pattern<'^[a-z0-9][a-z0-9-]{0,63}$'>
/** An address a browser may be sent to. */
export type BrowserUrl = string & tags.Pattern<'^(https?:\\/\\/|about:blank$)'> & tags.MaxLength<4000>

/** One open page of a browser. */
export interface BrowserPage {
  id: string
  title?: string
  url: string
  /** The page that calls use when they name none. */
  active: boolean
}
/** A browser that is running, or was within the last hour. */
export interface BrowserSession {
  name: string
  label: string
  /** `web` without sign-ins, else an account's profile or a copy of it: `<profile>.waits`, `<profile>.outside`. */
  server: string
  running: boolean
  activityAt: Millis
  finishedAt?: Millis
  conversationId?: string
  /** When it is not running, the last ones. */
  pages: BrowserPage[]
}
/** What a page shows. */
export interface BrowserCapture {
  pageId: string
  mime: 'image/webp'
  /** The picture, in base64. */
  data: string
  width: Count
  height: Count
  /** The text that can be seen. */
  text: string & tags.MaxLength<200000>
  /** There is more text. */
  truncated: boolean
}
/** One action on one page. */
export interface BrowserAct {
  name: BrowserName
  action: 'open' | 'goto' | 'back' | 'forward' | 'reload' | 'activate' | 'close' | 'capture'
  /** The active page when left out. */
  pageId?: Text & tags.MaxLength<40>
  /** Where to; `open` and `goto` need it. */
  url?: BrowserUrl
}
/** The result of an action. */
export interface BrowserActed {
  session: BrowserSession
  capture?: BrowserCapture
}

/** A file given to a page. */
export interface BrowserFile {
  name: string & tags.MinLength<1> & tags.MaxLength<255>
  /** In base64. */
  data: string
}
/** What an agent does on a page, and reads of it. */
export interface BrowserUse {
  name: BrowserName
  /** The active page when left out. */
  pageId?: Text & tags.MaxLength<40>
  action: 'read' | 'click' | 'hover' | 'fill' | 'press' | 'select' | 'upload' | 'wait'
  /** The element, as the last reading of the page names it; `press` and `wait` go without. */
  ref?: string & tags.Pattern<'^(?:f[0-9]{1,6})?e[0-9]{1,9}$'>
  /** What `fill` writes, or what `wait` waits for on the page. */
  text?: string & tags.MaxLength<100000>
  /** The origins of documents that `fill` writes in; left out: any. */
  origins?: string[]
  /** A key by its name, such as `Enter`, `a` or `Control+A`. */
  key?: string & tags.MinLength<1> & tags.MaxLength<64>
  /** The labels or values to select. */
  values?: (string & tags.MaxLength<2000>)[] & tags.MaxItems<100>
  files?: BrowserFile[] & tags.MaxItems<10>
}
/** For whom a browser uses a copy of a profile, and when a person signed in last. */
export interface BrowserApart {
  key: 'waits' | 'outside'
  since?: Millis
}
/** A page as text: its elements by role and name, those that can be used with a `ref`. */
export interface BrowserReading {
  session: BrowserSession
  pageId: string
  text: string
  /** There is more. */
  truncated: boolean
}

/** The mouse on the page shown, in the pixels of its pictures. */
export interface ViewMouseFrame {
  type: 'mouse'
  action: 'move' | 'down' | 'up' | 'wheel'
  x: number
  y: number
  /** 0 left, 1 middle, 2 right. */
  button?: number & tags.Type<'uint32'> & tags.Maximum<4>
  deltaX?: number
  deltaY?: number
}
/** Text as if it were typed. */
export interface ViewTextFrame {
  type: 'text'
  text: string
}
/** A key by its name, such as `Enter` or `a`. */
export interface ViewKeyFrame {
  type: 'key'
  key: string & tags.MinLength<1> & tags.MaxLength<32>
  ctrl?: boolean
  shift?: boolean
  alt?: boolean
}
/** Show this page instead of the active one. */
export interface ViewBindFrame {
  type: 'bind'
  pageId: string
}
/** Ask for the text that is selected. */
export interface ViewSelectionRequest {
  type: 'selection'
}
/** Choose from the drop-down whose options were sent last. */
export interface ViewSelectOptionFrame {
  type: 'selectOption'
  index: Count
}
/** Send no pictures until `resume`. */
export interface ViewPauseFrame {
  type: 'pause'
}
export interface ViewResumeFrame {
  type: 'resume'
}
/** Answered with `pong`; a client that sends nothing for 90 s is disconnected. */
export interface ViewPingFrame {
  type: 'ping'
}
/** What a viewer of a browser sends. */
export type ViewClientFrame =
  | ViewMouseFrame
  | ViewTextFrame
  | ViewKeyFrame
  | ViewBindFrame
  | ViewSelectionRequest
  | ViewSelectOptionFrame
  | ViewPauseFrame
  | ViewResumeFrame
  | ViewPingFrame

/** The size of the pictures that follow. */
export interface ViewReadyFrame {
  type: 'ready'
  width: Count
  height: Count
}
/** A picture in base64: `jpeg` while the page moves, `webp` once it is still. */
export interface ViewPictureFrame {
  type: 'frame'
  data: string
  format: 'jpeg' | 'webp'
}
/** The text that is selected. */
export interface ViewSelectionFrame {
  type: 'selection'
  text: string
}
/** One choice of a drop-down. */
export interface ViewOption {
  label: string
  disabled: boolean
}
/** A clicked drop-down, whose list pictures do not show. */
export interface ViewMenu {
  options: ViewOption[]
  /** -1: none. */
  selected: number & tags.Type<'int32'>
  rect: { x: number; y: number; width: number; height: number }
}
/** The drop-down to choose from; null once there is none. */
export interface ViewSelectFrame {
  type: 'select'
  menu: ViewMenu | null
}
/** The page shown was closed; the active one is shown now. */
export interface ViewGoneFrame {
  type: 'gone'
  pageId: string
}
/** The last frame of the client failed. */
export interface ViewErrorFrame {
  type: 'error'
  message: string
}
export interface ViewPongFrame {
  type: 'pong'
}
/** What a viewer of a browser receives. */
export type ViewServerFrame =
  | ViewReadyFrame
  | ViewPictureFrame
  | ViewSelectionFrame
  | ViewSelectFrame
  | ViewGoneFrame
  | ViewErrorFrame
  | ViewPongFrame

/** The events for groups whose work uses browsers. */
export interface BrowserEvents {
  /** A browser was closed, or crashed. */
  'browser.ended': { name: string; conversationId?: string }
}

/** The browsers of the sandbox, which agents and people use. */
export interface BrowserCalls {
  /** List the browsers that are open, and those closed within the last hour with the pages they had. */
  'GET /system/browsers'(): { sessions: BrowserSession[] }

  /**
   * Close a browser.
   *
   * Later calls answer 409, as after a crash. Closing a closed browser succeeds.
   *
   * - 404: no such browser
   */
  'DELETE /system/browsers/{name}'(input: { name: BrowserName }): Ok

  /**
   * Perform one action on one page: open, navigate, go back or forward, reload, activate, close, or capture it.
   *
   * `capture` gives the picture and the text that can be seen, and changes nothing. The others wait until the new page
   * begins to load, at most 15 s. `open` under an unused name `web-…` starts a browser.
   *
   * - 400: the action needs a field that was not given, such as `url`
   * - 404: no such browser or page
   * - 409: the browser is not running, runs already, or the page was closed meanwhile
   * - 422: an address of the daemon, or one that the network policy does not allow
   * - 424: the page could not be reached or shown
   * - 429: too many browsers or pages are open
   * - 501: Chromium is missing
   */
  'POST /system/browsers/{name}/page'(input: BrowserAct): BrowserActed

  /**
   * Look at a browser, and use its page.
   *
   * It takes a ticket of `POST /system/ws-ticket`. Pictures are sent as the page changes, each after the client took
   * the previous one: a slow client gets fewer, newer ones. The active page is shown until `bind` names one. Closing
   * the socket does not affect the browser.
   *
   * - 404: no such browser
   * - 409: the browser is not running
   * - 429: 8 sockets are open on the browser
   */
  'GET /system/browser-view'(input: { session: BrowserName; ticket: string }): Socket<ViewClientFrame, ViewServerFrame>

  /** Starts a browser, with a page if `url` is given; the caller that runs the conversation's turn closes it. */
  'browsers.open'(input: {
    /** Generated when left out; the name of a running browser is a conflict. */
    name?: BrowserName
    label?: Text & tags.MaxLength<80>
    /** Its pages reach what this conversation reaches. */
    conversationId?: string
    /** The profile: an account's id, or `web`, which begins empty. */
    profile?: BrowserProfile
    /** Uses a copy of the profile, for work that does not land by itself; one from before `since` is made anew. */
    apart?: BrowserApart
    /** The exit through which its pages are asked; it is started and proven first. */
    exit?: string
    /** False: its pages cannot reach loopback and private addresses. */
    near?: boolean
    url?: BrowserUrl
  }): BrowserSession

  /** Acts on a page, as `POST /system/browsers/{name}/page` does. */
  'browsers.page'(input: BrowserAct): BrowserActed

  /** Does something on a page as an agent does, and reads the page then. */
  'browsers.use'(input: BrowserUse): BrowserReading

  /** Every browser, with the addresses and titles of all pages. */
  'browsers.list'(): { sessions: BrowserSession[] }

  /** The hosts of which a profile that no browser uses has cookies. */
  'browsers.kept'(input: { profile: BrowserProfile }): { hosts: string[] }

  /** Closes the browser of a profile and removes everything that is kept of it. */
  'browsers.forget'(input: { profile: BrowserProfile }): Ok

  /** Closes one browser, or those of a conversation. */
  'browsers.end'(input: { name?: BrowserName; conversationId?: string }): Ok
}
