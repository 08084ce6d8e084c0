import type { tags } from 'typia'
import type { Count, Millis, Ok, Text } from '../../sdk/types.js'

/** The name of a browser. */
export type BrowserName = string & tags.Pattern<'^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'>
/** An address a browser may be sent to. */
export type BrowserUrl = string & tags.Pattern<'^(https?:\\/\\/|about:blank$)'> & tags.MaxLength<4000>

/** One open page of a browser. */
export interface BrowserPage {
  id: string
  title?: string
  url: string
  /** The page that is looked at and acted on when none is named. */
  active: boolean
}
/** A browser that is running, or was within the last hour. */
export interface BrowserSession {
  name: string
  label: string
  /** `web` for the profile without sign-ins, else the id of the account whose profile it is. */
  server: string
  running: boolean
  activityAt: Millis
  finishedAt?: Millis
  conversationId?: string
  /** Those it had last, when it is not running. */
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
/** One act on one page. */
export interface BrowserAct {
  name: BrowserName
  action: 'open' | 'goto' | 'back' | 'forward' | 'reload' | 'activate' | 'close' | 'capture'
  /** The active page when left out. */
  pageId?: Text & tags.MaxLength<40>
  /** Where to; `open` and `goto` need it. */
  url?: BrowserUrl
}
/** What came of an act. */
export interface BrowserActed {
  session: BrowserSession
  capture?: BrowserCapture
}

/** The browsers of the sandbox: real ones, which agents use and people look at. */
export interface BrowserCalls {
  /** List the browsers that are open, and those closed within the last hour with the pages they had. */
  'GET /system/browsers'(): { sessions: BrowserSession[] }

  /**
   * Close a browser.
   *
   * Whoever uses it next is told that it is not running, as after a crash. Closing one that is closed is fine.
   */
  'DELETE /system/browsers/{name}'(input: { name: BrowserName }): Ok

  /**
   * Do one thing with one page: open, send somewhere, go back or forward, reload, look at, close, or capture it.
   *
   * `capture` gives the picture and the text that can be seen, and changes nothing. The others wait until the new page
   * begins to come, at most 15 s. `open` under a name `web-…` that no browser has starts one.
   */
  'POST /system/browsers/{name}/page'(input: BrowserAct): BrowserActed

  /** Starts a browser, on a page when `url` says so; it ends with the conversation's turn when whoever runs that says so. */
  'browsers.open'(input: {
    /** Made up when left out; the name of one that runs is a conflict. */
    name?: BrowserName
    label?: Text & tags.MaxLength<80>
    conversationId?: string
    /** Whose sign-ins it has: an account's id, or `web`, which has none and begins empty. */
    profile?: string & tags.Pattern<'^[a-z0-9][a-z0-9-]{0,63}$'>
    /** False: loopback and private addresses are closed to its pages. */
    near?: boolean
    url?: BrowserUrl
  }): BrowserSession

  /** Acts on a page, as `POST /system/browsers/{name}/page` does. */
  'browsers.page'(input: BrowserAct): BrowserActed

  /** Every browser, with everything its pages say. */
  'browsers.list'(): { sessions: BrowserSession[] }

  /** Closes one browser, or those of a conversation. */
  'browsers.end'(input: { name?: BrowserName; conversationId?: string }): Ok
}
