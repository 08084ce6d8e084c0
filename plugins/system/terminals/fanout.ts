import { Inbox } from '../../../sdk/node/concurrency/inbox.js'
import type { TerminalServerFrame } from '../contract.js'
import type { Feed, TerminalListener, TerminalSize } from './backend.js'

const FULL = 1 << 20
const ROOM = 256 << 10
const PIECE = 32 << 10
/** How often in a row a feed may be lost before the session counts as gone. */
const LOSSES = 5
/** What a program ended with of which only that is known. */
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
  /** What the session showed before was drawn for it: it follows what is said. */
  drawn: boolean
}

/** Everyone who watches one session. Whoever is slowest holds up the program; nothing is left out for anybody. */
export class TerminalFanout implements TerminalListener {
  readonly #follow: (listener: TerminalListener) => Promise<Feed | undefined>
  readonly #emptied: () => void
  readonly #seats = new Set<Watcher>()
  readonly #full = new Set<Watcher>()
  #following: Promise<Feed | undefined> | undefined
  #feed: Feed | undefined
  #size: TerminalSize | undefined
  #lost = 0

  /** @param emptied Told when the last one has left; the room is not used again. */
  constructor(follow: (listener: TerminalListener) => Promise<Feed | undefined>, emptied: () => void) {
    this.#follow = follow
    this.#emptied = emptied
  }

  get viewers(): number {
    return this.#seats.size
  }

  /** Takes a seat; undefined when there is no such session. */
  async enter(size: TerminalSize): Promise<Viewer | undefined> {
    const seat: Watcher = {
      size,
      drawn: false,
      inbox: new Inbox({
        weigh: frame => (frame.type === 'data' ? frame.data.length : 0),
        full: FULL,
        room: ROOM,
        pause: () => this.#hold(seat),
        resume: () => this.#release(seat),
      }),
    }
    this.#seats.add(seat)
    const feed = await (this.#following ??= this.#follow(this)).catch(error => {
      this.#leave(seat)
      throw error
    })
    if (!feed) {
      this.#leave(seat)
      return undefined
    }
    this.#feed ??= feed
    this.#fit()
    feed.draw(text => this.#drawn(seat, text))
    return {
      write: text => this.#feed?.write(text),
      resize: wanted => {
        seat.size = wanted
        this.#fit()
      },
      pong: () => seat.inbox.put({ type: 'pong' }),
      leave: () => this.#leave(seat),
      [Symbol.asyncIterator]: () => seat.inbox[Symbol.asyncIterator](),
    }
  }

  data(text: string): void {
    this.#lost = 0
    for (const seat of this.#seats) if (seat.drawn) say(seat, text)
  }

  exit(code: number): void {
    for (const { inbox } of this.#seats) {
      inbox.put({ type: 'exit', code })
      inbox.end()
    }
  }

  lost(): void {
    if (!this.#seats.size) return
    if (++this.#lost > LOSSES) return this.exit(KILLED)
    this.#size = undefined
    this.#feed = undefined
    this.#following = this.#follow(this).catch(() => undefined)
    void this.#following.then(feed => {
      if (!feed) return this.exit(KILLED)
      this.#feed = feed
      this.#fit()
      if (this.#full.size) feed.pause()
      for (const seat of this.#seats) {
        seat.drawn = false
        feed.draw(text => this.#drawn(seat, RESET + text))
      }
    })
  }

  #drawn(seat: Watcher, text: string): void {
    say(seat, text)
    seat.drawn = true
  }

  #leave(seat: Watcher): void {
    if (!this.#seats.delete(seat)) return
    seat.inbox.end()
    this.#release(seat)
    if (this.#seats.size) return this.#fit()
    void this.#following?.then(feed => feed?.close()).catch(() => {})
    this.#emptied()
  }

  /** The terminal is as large as the smallest window. */
  #fit(): void {
    const sizes = [...this.#seats].map(({ size }) => size)
    const cols = Math.min(...sizes.map(size => size.cols))
    const rows = Math.min(...sizes.map(size => size.rows))
    if (this.#size?.cols === cols && this.#size.rows === rows) return
    if (!this.#feed) return
    this.#size = { cols, rows }
    this.#feed.resize({ cols, rows })
  }

  #hold(seat: Watcher): void {
    this.#full.add(seat)
    this.#feed?.pause()
  }

  #release(seat: Watcher): void {
    if (this.#full.delete(seat) && !this.#full.size) this.#feed?.resume()
  }
}

/** In pieces, so that no frame is large. */
const say = ({ inbox }: Watcher, text: string): void => {
  for (let at = 0; at < text.length; at += PIECE) inbox.put({ type: 'data', data: text.slice(at, at + PIECE) })
}
