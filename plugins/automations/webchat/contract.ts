import type { tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type { Count, Millis, MostCharacters, Positive, Text } from '../../../sdk/types.js'

/** An origin of a page, as browsers send it, such as `https://www.example.org`. */
export type PageOrigin = string & tags.MinLength<1> & tags.MaxLength<300>
/** The provider of the site's own sign-in, whose tokens name a visitor. */
export interface VisitorSignIn {
  issuer: string & tags.MinLength<1> & tags.MaxLength<500>
  clientId: string & tags.MinLength<1> & tags.MaxLength<300>
}
/** The corner of the page in which the chat stands. */
export type ChatPosition = 'top-right' | 'top-left' | 'bottom-right' | 'bottom-left'
type Accent = string & tags.Pattern<'^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$'>

/** The chat of a web page: how it looks, and what its visitors may use up. */
export interface WebchatConfig {
  /** `public` unless set; `signed-in`: only visitors that the site has signed in, by a token of `signIn`. */
  access?: 'public' | 'signed-in'
  /** Visitors say their name before they write. */
  requireName?: boolean
  /** Whether a visitor's browser solves a puzzle before the first message; `pow` unless set. */
  antiBot?: 'off' | 'pow'
  /** Needed with `access` "signed-in". */
  signIn?: VisitorSignIn
  title?: string & MostCharacters<80>
  /** What the chat says first. */
  greeting?: string & MostCharacters<500>
  /** The colour of its button. */
  accent?: Accent
  /** `bottom-right` unless set. */
  position?: ChatPosition
  /** Messages of all visitors in a day (UTC); 200 unless set. */
  dailyMessageMax?: Positive
  /** Messages of one visitor's thread; no limit of its own unless set. */
  conversationMessageMax?: Positive
  /** Minutes without a message after which a visitor's thread is closed; 30 days unless set. */
  sessionTtlMinutes?: Positive
}

/** A site that loaded the chat, or was refused it. */
export interface ChatSite {
  origin: string
  /** Whether it is on the list now. */
  allowed: boolean
  lastSeenAt: Millis
  /** How often it was loaded. */
  loads: Count
  /** How often it was refused. */
  refused: Count
}

/** What the chat of a page is drawn from. */
export interface WidgetConfig {
  automationId: string
  title: string
  greeting: string
  accent: Accent
  position: ChatPosition
  access: 'public' | 'signed-in'
  requireName: boolean
  antiBot: 'off' | 'pow'
  signIn?: VisitorSignIn
  maxLength: Count
}
/** A puzzle for one thread: a `nonce` with which the SHA-256 of `<salt>:<nonce>` begins with so many zero bits. */
export interface Challenge {
  salt: string
  difficulty: Positive & tags.Maximum<24>
  expiresAt: Millis
}
/** What was said before, as the page has it. */
export interface EarlierWords {
  author?: string & MostCharacters<80>
  content: string & MostCharacters<8000>
}
/** A visitor's own id of a thread, which the page mints. */
export type ThreadId = string & tags.MinLength<16> & tags.MaxLength<64> & tags.Pattern<'^[A-Za-z0-9_-]*$'>
/** What a visitor writes. */
export interface VisitorMessage {
  conversationId: ThreadId
  /** The same one again asks nothing twice. */
  messageId: string & tags.MinLength<1> & tags.MaxLength<128>
  content: string & tags.MinLength<1> & MostCharacters<8000>
  /** The token of the frame `accepted`; needed after the first message. */
  visitor?: string & tags.MaxLength<200>
  displayName?: string & MostCharacters<80>
  /** A token of the site's own sign-in. */
  idToken?: string & tags.MaxLength<8000>
  /** `<salt>:<nonce>`, with the first message. */
  powNonce?: string & tags.MaxLength<200>
  /** With the first message. */
  history?: EarlierWords[] & tags.MaxItems<50>
}

/** The message is kept; `visitor` is the token of its thread. */
export interface VisitorAccepted {
  kind: 'accepted'
  visitor: string
  seq: Count
}
/** A piece of an answer to the message `seq`, whose whole follows as a message. */
export interface VisitorDelta {
  kind: 'delta'
  seq: Count
  text: string
}
/** A whole message. */
export interface VisitorText {
  kind: 'message'
  seq: Count
  from: 'visitor' | 'agent'
  text: string
  at: Millis
}
/** A person has to allow the answer first. */
export interface VisitorPending {
  kind: 'pending'
  seq: Count
  text: string
}
/** What a visitor's page is told. */
export type VisitorFrame = VisitorAccepted | VisitorDelta | VisitorText | VisitorPending
/** The last frame that the page has. */
export interface VisitorEnd {
  seq: Count
}

/** The script of the chat. */
export interface WidgetScript {
  'content-type': 'text/javascript; charset=utf-8'
}

/** The chat of web pages: what visitors' browsers call. */
export interface WebchatCalls {
  /**
   * Load the chat into a web page, by a script tag with the automation's id in `data-automation`.
   *
   * It draws in a closed shadow root, shows text only, and keeps the thread and its token in the storage of the site.
   *
   * - 503: the file is missing in this build
   */
  'GET /webchat/widget.js'(): WidgetScript

  /**
   * Read what the chat is drawn from; each load is counted for its site, admitted or not.
   *
   * - 403: no origin, or one that is not on the automation's list
   * - 404: no such chat
   * - 409: it is switched off
   * - 429: more than 60 requests a minute from one address
   */
  'GET /webchat/{id}/config'(input: { id: Text }): WidgetConfig

  /**
   * Get a puzzle for the first message of a thread.
   *
   * It takes longer for an address that opens many threads, and while more than half of the day's messages are used.
   * Nothing is stored; it holds for 15 minutes, for this thread alone.
   *
   * - 403: no origin, or one that is not on the automation's list
   * - 404: no such chat
   * - 409: it is switched off
   * - 429: more than 30 requests a minute from one address
   */
  'GET /webchat/{id}/challenge'(input: { id: Text; conversation: ThreadId }): Challenge

  /**
   * Send a visitor's message and follow the answer; closing the connection does not stop it.
   *
   * Checks, in this order: origin, size, the budget of a minute, sign-in, token or puzzle, the budgets of thread and
   * day. The agent gets the words as those of a stranger. The body has at most 16 KiB, 64 KiB with `history`.
   *
   * - 401: the visitor has to sign in, or the thread's token is wrong
   * - 403: no origin, or one that is not on the automation's list; or the puzzle is not solved, or not for this thread
   * - 404: no such chat
   * - 409: it is switched off
   * - 413: the body is larger
   * - 424: the keys of the site's sign-in cannot be fetched
   * - 429: more than 20 messages a minute in a thread, 60 from one address, or the messages of the thread or the day
   */
  'POST /webchat/{id}/message'(input: VisitorMessage & { id: Text }): Stream<VisitorFrame, VisitorEnd>

  /**
   * Follow a thread: its messages after `after`, then new ones.
   *
   * - 401: the thread's token is wrong
   * - 403: no origin, or one that is not on the automation's list
   * - 404: no such chat
   * - 429: more than 60 requests a minute from one address, or 3 streams of the thread
   */
  'GET /webchat/{id}/stream'(input: {
    id: Text
    conversation: ThreadId
    visitor: string & tags.MinLength<1> & tags.MaxLength<200>
    after?: Count
  }): Stream<VisitorFrame, VisitorEnd>

  /** Whether pages of an origin may use a chat; counts the loads of those that may not. */
  'automations.chatOrigin'(input: { id: string; origin: string; asked: string }): {
    verdict: 'admitted' | 'refused' | 'unknown'
  }
}
