import { Inbox } from '../../../sdk/node/concurrency/inbox.js'
import type { TerminalServerFrame } from '../contract.js'
import type { Feed, TerminalListener, TerminalSize } from './backend.js'
import { ignored } from '../../../sdk/index.js'

const FULL = 1 << 20
const RESUME = 256 << 10
const PIECE = 32 << 10
/** How many times in a row a feed may be lost before the session counts as ended. */
const LOSSES = 5
/** The exit code reported for a program whose own is unknown. */
const KILLED = 137
const RESET = '\x1bc'

/** One socket on a session. */
export interface Viewer extends AsyncIterable<TerminalServerFrame> {
  write(text: string): void
  resize(size: TerminalSize): void
  pong(): void
  leave(): void
}

interface Watcher {
  readonly inbox: Inbox<TerminalServerFrame>
  size: TerminalSize
  /** The earlier output was drawn for it, so it receives new output. */
  drawn: boolean
}

/** All viewers of one session. The slowest viewer slows the program down, so that no viewer loses output. */
export class TerminalFanout implements TerminalListener {
  readonly #follow: (listener: TerminalListener) => Promise<Feed | undefined>
  readonly #emptied: () => void
  readonly #watchers = new Set<Watcher>()
  readonly #full = new Set<Watcher>()
  #following: Promise<Feed | undefined> | undefined
  #feed: Feed | undefined
  #size: TerminalSize | undefined
  #lost = 0

  /** @param emptied Called when the last viewer has left; the fan-out is not used again. */
  constructor(follow: (listener: TerminalListener) => Promise<Feed | undefined>, emptied: () => void) {
    this.#follow = follow
    this.#emptied = emptied
  }

  get viewers(): number {
    return this.#watchers.size
  }

  /** Adds a viewer; undefined when there is no such session. */
  async enter(size: TerminalSize): Promise<Viewer | undefined> {
    const watcher: Watcher = {
      size,
      drawn: false,
      inbox: new Inbox({
        weigh: frame => (frame.type === 'data' ? frame.data.length : 0),
        full: FULL,
        room: RESUME,
        pause: () => this.#hold(watcher),
        resume: () => this.#release(watcher),
      }),
    }
    this.#watchers.add(watcher)
    const feed = await (this.#following ??= this.#follow(this)).catch(error => {
      this.#leave(watcher)
      throw error
    })
    if (!feed) {
      this.#leave(watcher)
      return undefined
    }
    this.#feed ??= feed
    this.#fit()
    feed.draw(text => this.#drawn(watcher, text))
    return {
      write: text => this.#feed?.write(text),
      resize: wanted => {
        watcher.size = wanted
        this.#fit()
      },
      pong: () => watcher.inbox.put({ type: 'pong' }),
      leave: () => this.#leave(watcher),
      [Symbol.asyncIterator]: () => watcher.inbox[Symbol.asyncIterator](),
    }
  }

  data(text: string): void {
    this.#lost = 0
    for (const watcher of this.#watchers) if (watcher.drawn) send(watcher, text)
  }

  exit(code: number): void {
    for (const { inbox } of this.#watchers) {
      inbox.put({ type: 'exit', code })
      inbox.end()
    }
  }

  lost(): void {
    if (!this.#watchers.size) return
    if (++this.#lost > LOSSES) return this.exit(KILLED)
    this.#size = undefined
    this.#feed = undefined
    this.#following = this.#follow(this).catch(() => undefined)
    void this.#following.then(feed => {
      if (!feed) return this.exit(KILLED)
      this.#feed = feed
      this.#fit()
      if (this.#full.size) feed.pause()
      for (const watcher of this.#watchers) {
        watcher.drawn = false
        feed.draw(text => this.#drawn(watcher, RESET + text))
      }
    })
  }

  #drawn(watcher: Watcher, text: string): void {
    send(watcher, text)
    watcher.drawn = true
  }

  #leave(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher)) return
    watcher.inbox.end()
    this.#release(watcher)
    if (this.#watchers.size) return this.#fit()
    void this.#following?.then(feed => feed?.close()).catch(ignored('it may have ended already'))
    this.#emptied()
  }

  /** The terminal has the size of the smallest window. */
  #fit(): void {
    const sizes = [...this.#watchers].map(({ size }) => size)
    const cols = Math.min(...sizes.map(size => size.cols))
    const rows = Math.min(...sizes.map(size => size.rows))
    if (this.#size?.cols === cols && this.#size.rows === rows) return
    if (!this.#feed) return
    this.#size = { cols, rows }
    this.#feed.resize({ cols, rows })
  }

  #hold(watcher: Watcher): void {
    this.#full.add(watcher)
    this.#feed?.pause()
  }

  #release(watcher: Watcher): void {
    if (this.#full.delete(watcher) && !this.#full.size) this.#feed?.resume()
  }
}

/** Sends text in pieces, so that no frame is large. */
const send = ({ inbox }: Watcher, text: string): void => {
  for (let at = 0; at < text.length; at += PIECE) inbox.put({ type: 'data', data: text.slice(at, at + PIECE) })
}
