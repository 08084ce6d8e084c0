import type { Challenge, VisitorFrame, VisitorMessage, WidgetConfig } from '../../../automations/contract.js'
import { chatEvents } from './events.js'
import { solved } from './proof.js'
import { ChatView } from './view.js'

/** What a page may set as `sandboxChat`, before or after the script. */
export interface PageSettings {
  /** A token of the site's own sign-in, or what gives one. */
  readonly idToken?: string | (() => string | undefined | Promise<string | undefined>)
  readonly displayName?: string
  /** What was said before. */
  readonly history?: VisitorMessage['history']
}

/** What is kept in the storage of the site. */
interface KeptThread {
  readonly thread: string
  readonly visitor?: string
  /** Messages that wait for their answer. */
  readonly waits?: number
  /** The last line that was shown; after a reload those before it are shown again. */
  readonly shown?: number
}

/** A message on its way, with the puzzle that opens its thread. */
type Sending = Pick<VisitorMessage, 'messageId' | 'content' | 'displayName' | 'powNonce'>

const AGAIN_MS = 1000
const MOST_AGAIN_MS = 30_000
const SENTENCES: { readonly [status: number]: string } = {
  401: 'Sign in to this site to use the chat.',
  403: 'The chat is not available on this page.',
  409: 'The chat is switched off.',
  413: 'This message is too long.',
  429: 'Too many messages. Please try again later.',
}
const FAILED = 'This did not work. Please try again.'

const minted = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(18))
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
}

/** The chat of one page: its thread, and what was said in it. */
export class Chat {
  readonly #base: string
  readonly #config: WidgetConfig
  readonly #page: () => PageSettings
  readonly #view: ChatView
  readonly #key: string
  #kept: KeptThread
  #seq = 0
  #reading: AbortController | undefined
  /** It may have arrived: sent again, it is the same message. */
  #unsure: Sending | undefined

  constructor(root: ShadowRoot, base: string, config: WidgetConfig, page: () => PageSettings) {
    this.#base = base
    this.#config = config
    this.#page = page
    this.#key = `sandbox-chat:${config.automationId}`
    this.#kept = this.#stored() ?? { thread: minted() }
    this.#view = new ChatView(root, config, {
      toggled: open => (open ? this.#resume() : this.#rest()),
      send: (text, name) => void this.#send(text, name),
    })
    // A page that is loaded again in the middle of an answer goes on with it.
    if (this.#kept.waits) this.#resume()
  }

  /** Ends a reading from which nothing is expected; the first message may still be on its way. */
  #rest(): void {
    if (this.#kept.waits || this.#kept.visitor === undefined || this.#view.isOpen) return
    this.#reading?.abort()
    this.#reading = undefined
  }

  /** Reads the thread, unless it is read. */
  #resume(): void {
    if (this.#kept.visitor !== undefined && !this.#reading) void this.#follow(this.#kept.visitor)
  }

  async #send(text: string, name: string): Promise<void> {
    this.#view.busy(true, 'Sending …')
    const unsure = this.#unsure?.content === text ? this.#unsure : undefined
    const message = unsure ?? { messageId: minted(), content: text, ...(name && { displayName: name }) }
    const fault = await this.#sent(message).catch(() => FAILED)
    this.#view.busy(false, fault ?? '')
  }

  /** Sends a message; the sentence why it could not be. */
  async #sent({ powNonce: solvedBefore, ...message }: Sending, again = false): Promise<string | undefined> {
    const { idToken, displayName, history } = this.#page()
    const token = typeof idToken === 'function' ? await idToken() : idToken
    const { thread, visitor } = this.#kept
    // Of a thread that is open, the lines come with what is read of it already.
    const reading = visitor === undefined ? this.#begin() : new AbortController()
    const puzzled = visitor === undefined && this.#config.antiBot === 'pow'
    const powNonce = puzzled ? (solvedBefore ?? (await this.#proof(thread, reading.signal))) : undefined
    this.#unsure = { ...message, ...(powNonce !== undefined && { powNonce }) }
    const response = await fetch(this.#address('message'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      credentials: 'omit',
      body: JSON.stringify({
        conversationId: thread,
        ...(displayName !== undefined && { displayName }),
        ...message,
        ...(visitor !== undefined && { visitor }),
        ...(token !== undefined && { idToken: token }),
        ...(powNonce !== undefined && { powNonce }),
        ...(visitor === undefined && history && { history }),
      } satisfies VisitorMessage),
      signal: reading.signal,
    })
    if (response.status < 500) this.#unsure = undefined
    if (response.status === 401 && !again) {
      // The thread is closed, or open for a token that was lost.
      this.#another()
      this.#view.empty()
      return this.#sent(message, true)
    }
    if (!response.ok || !response.body) {
      if (visitor === undefined) this.#reading = undefined
      return SENTENCES[response.status] ?? FAILED
    }
    this.#view.clear()
    this.#keep({ ...this.#kept, waits: (this.#kept.waits ?? 0) + 1 })
    if (visitor === undefined) void this.#read(response.body, reading)
    else {
      reading.abort()
      this.#resume()
    }
    return undefined
  }

  async #proof(thread: string, signal: AbortSignal): Promise<string | undefined> {
    const response = await fetch(`${this.#address('challenge')}?conversation=${thread}`, {
      credentials: 'omit',
      signal,
    })
    if (!response.ok) throw new Error(FAILED)
    const { salt, difficulty } = (await response.json()) as Challenge
    return solved(salt, difficulty, signal)
  }

  /** Follows the thread, again after each cut. */
  async #follow(visitor: string): Promise<void> {
    const reading = this.#begin()
    for (let wait = AGAIN_MS; !reading.signal.aborted; wait = Math.min(wait * 2, MOST_AGAIN_MS)) {
      const query = new URLSearchParams({ conversation: this.#kept.thread, visitor, after: String(this.#seq) })
      const response = await fetch(`${this.#address('stream')}?${query}`, {
        credentials: 'omit',
        signal: reading.signal,
      }).catch(() => undefined)
      if (reading.signal.aborted) return
      if (response && [401, 403, 404].includes(response.status)) {
        this.#reading = undefined
        if (response.status === 401) this.#another()
        return
      }
      if (response?.ok && response.body) {
        wait = AGAIN_MS
        await this.#frames(response.body).catch(() => undefined)
        this.#view.void()
      }
      if (!reading.signal.aborted) await new Promise(resolve => setTimeout(resolve, wait))
    }
  }

  /** Begins another thread. */
  #another(): void {
    this.#reading?.abort()
    this.#reading = undefined
    this.#keep({ thread: minted() })
    this.#seq = 0
  }

  /** Reads the answer to a first message, then follows the thread. */
  async #read(body: ReadableStream<Uint8Array>, reading: AbortController): Promise<void> {
    await this.#frames(body).catch(() => undefined)
    if (reading.signal.aborted) return
    this.#reading = undefined
    this.#resume()
  }

  async #frames(body: ReadableStream<Uint8Array>): Promise<void> {
    this.#view.void()
    for await (const { name, data } of chatEvents(body)) if (name === 'message') this.#frame(data as VisitorFrame)
  }

  #frame(frame: VisitorFrame): void {
    if (frame.kind === 'accepted') return this.#keep({ ...this.#kept, visitor: frame.visitor })
    if (frame.kind === 'delta') return this.#view.delta(frame.text)
    if (frame.seq <= this.#seq) return
    this.#seq = frame.seq
    const isNews = frame.seq > (this.#kept.shown ?? 0)
    if (isNews) this.#keep({ ...this.#kept, shown: frame.seq })
    if (frame.kind === 'pending') return this.#view.note(frame.text)
    this.#view.message(frame.from, frame.text, isNews)
    if (frame.from === 'visitor' || !isNews) return
    this.#keep({ ...this.#kept, waits: Math.max(0, (this.#kept.waits ?? 0) - 1) })
    this.#rest()
  }

  /** Ends what is being read, and begins another reading. */
  #begin(): AbortController {
    this.#reading?.abort()
    return (this.#reading = new AbortController())
  }

  #address(what: string): string {
    return `${this.#base}/webchat/${encodeURIComponent(this.#config.automationId)}/${what}`
  }

  #stored(): KeptThread | undefined {
    try {
      const kept = JSON.parse(localStorage.getItem(this.#key) ?? 'null') as Partial<KeptThread> | null
      return kept && /^[\w-]{16,64}$/.test(kept.thread ?? '') ? (kept as KeptThread) : undefined
    } catch {
      return undefined
    }
  }

  #keep(kept: KeptThread): void {
    this.#kept = kept
    try {
      localStorage.setItem(this.#key, JSON.stringify(kept))
    } catch {
      // Without a storage the thread lasts as long as the page.
    }
  }
}
