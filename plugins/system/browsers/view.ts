import { Refusal, refuse, ignored } from '../../../sdk/index.js'
import type { ViewClientFrame, ViewKeyFrame, ViewMouseFrame, ViewPingFrame, ViewServerFrame } from './contract.js'
import { Cast } from './cast.js'
import { VIEWPORT } from './chromium.js'
import { acts, PointerAndKeys } from './pointer-and-keys.js'
import { choose, MENU, menuAt, SELECTED } from './menu.js'
import type { RunningBrowser } from './running.js'
import type { Tab } from './tab.js'

const PATIENCE_MS = 5000
/** The most frames waiting to be sent, not counting pictures; beyond that the client's frames are not read. */
const MOST_WAITING = 64

type Said = Exclude<ViewClientFrame, ViewPingFrame>

const moves = (frame: Said): boolean => frame.type === 'mouse' && frame.action === 'move'

/** One person who looks at a browser and may use it. */
export class View {
  readonly #running: RunningBrowser
  readonly #hands = new PointerAndKeys()
  /** Records that the person took control. */
  readonly #driven: () => Promise<void>
  readonly #waiting: ViewServerFrame[] = []
  readonly #todo: { readonly frame: Said; readonly at: number }[] = []
  #working: Promise<void> | undefined
  #wake: () => void = () => {}
  #drained: () => void = () => {}
  #cast: Cast | undefined
  #bound: string | undefined
  #menu = false
  #paused = false
  #drove = false
  #over = false
  #switching: Promise<void> = Promise.resolve()

  constructor(running: RunningBrowser, driven: () => Promise<void>) {
    this.#running = running
    this.#driven = driven
  }

  /** The frames to send, each when the previous one has been sent; ends with the browser or the socket. */
  async *frames(from: AsyncIterable<ViewClientFrame>, signal: AbortSignal): AsyncGenerator<ViewServerFrame, void> {
    const deaf = this.#running.listen(() => this.#follow())
    const end = () => {
      this.#over = true
      this.#wake()
      this.#drained()
    }
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    try {
      yield { type: 'ready', ...VIEWPORT }
      this.#follow()
      void this.#read(from).finally(end)
      for (;;) {
        const frame = this.#waiting.shift()
        this.#drained()
        if (frame) {
          yield frame
          continue
        }
        const cast = this.#cast
        const picture = cast?.take()
        if (picture) {
          yield { type: 'frame', ...picture }
          cast?.sent()
          continue
        }
        if (this.#over) return
        await new Promise<void>(wake => {
          this.#wake = wake
        })
      }
    } finally {
      deaf()
      signal.removeEventListener('abort', end)
      end()
      await this.#leave()
    }
  }

  #say(frame: ViewServerFrame): void {
    this.#waiting.push(frame)
    this.#wake()
  }

  /** Shows the page it is bound to, else the active one. */
  #follow(): void {
    this.#switching = this.#switching.then(() => this.#show()).catch(error => this.#failed(error))
  }

  async #show(): Promise<void> {
    if (!this.#running.alive && !this.#over) {
      this.#say({ type: 'error', message: 'the browser is not running: it was closed, or it crashed' })
      this.#over = true
    }
    if (this.#over) return this.#wake()
    const shown = this.#cast?.tab
    const bound = this.#bound === undefined ? undefined : this.#running.find(this.#bound)
    if (this.#bound !== undefined && !bound) this.#bound = undefined
    const tab = bound ?? this.#running.active
    if (tab === shown) return
    await this.#cast?.stop()
    this.#cast = undefined
    if (shown && !this.#running.find(shown.id)) this.#say({ type: 'gone', pageId: shown.id })
    this.#closeMenu()
    if (!tab) return
    const cast = await Cast.start(tab, () => this.#wake())
    if (this.#over) return cast.stop()
    if (this.#paused) await cast.pause()
    this.#cast = cast
    this.#wake()
  }

  async #leave(): Promise<void> {
    await this.#switching
    const tab = this.#cast?.tab
    await this.#cast?.stop()
    if (tab && this.#running.alive) await this.#hands.release(tab).catch(ignored('the tab is gone'))
  }

  /** Reads what the client sends, until the socket closes. */
  async #read(from: AsyncIterable<ViewClientFrame>): Promise<void> {
    for await (const frame of from) {
      if (this.#over) return
      if (frame.type === 'ping') this.#say({ type: 'pong' })
      else this.#plan(frame)
      while (!this.#over && (this.#waiting.length >= MOST_WAITING || this.#todo.length >= MOST_WAITING))
        await new Promise<void>(drained => {
          this.#drained = drained
        })
    }
  }

  /** While earlier input is being processed, only the last of several mouse moves is kept. */
  #plan(frame: Said): void {
    const last = this.#todo.at(-1)
    if (moves(frame) && last && moves(last.frame)) this.#todo.pop()
    this.#todo.push({ frame, at: performance.now() })
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
    })
  }

  /** Processes the client's frames in order. */
  async #work(): Promise<void> {
    for (let next = this.#todo.shift(); next && !this.#over; next = this.#todo.shift()) {
      await this.#receive(next.frame, next.at).catch(error => this.#failed(error))
      this.#drained()
    }
  }

  async #receive(frame: Said, at: number): Promise<void> {
    await this.#switching
    if (acts(frame) && !this.#drove) {
      this.#drove = true
      await this.#driven()
    }
    switch (frame.type) {
      case 'bind':
        this.#running.tab(frame.pageId)
        this.#bound = frame.pageId
        this.#follow()
        return this.#switching
      case 'pause':
        this.#paused = true
        return this.#cast?.pause()
      case 'resume':
        if (!this.#paused) return
        this.#paused = false
        return this.#cast?.resume()
      case 'selection':
        return this.#say({
          type: 'selection',
          text: String((await this.#tab.askAll(SELECTED, PATIENCE_MS)) ?? '').toWellFormed(),
        })
      case 'selectOption':
        return this.#choose(frame.index)
      case 'text':
        return this.#hands.text(this.#tab, frame.text)
      case 'key':
        return this.#press(frame)
      case 'mouse':
        return this.#point(frame, at)
    }
  }

  get #tab(): Tab {
    return this.#cast?.tab ?? refuse('not-found', 'no page is open: open one')
  }

  async #point(frame: ViewMouseFrame, at: number): Promise<void> {
    const tab = this.#tab
    if (frame.action === 'down') this.#closeMenu()
    await this.#hands.mouse(tab, frame, at)
    if (frame.action === 'up' && (frame.button ?? 0) === 0) await this.#openMenu(tab, frame)
  }

  async #press(frame: ViewKeyFrame): Promise<void> {
    this.#closeMenu()
    await this.#hands.key(this.#tab, frame)
  }

  /** Sends the options of a clicked drop-down, because pictures do not show its list. */
  async #openMenu(tab: Tab, at: ViewMouseFrame): Promise<void> {
    const menu = menuAt(await tab.askAll(MENU, PATIENCE_MS), at)
    if (!menu) return
    this.#menu = true
    this.#say({ type: 'select', menu })
  }

  #closeMenu(): void {
    if (!this.#menu) return
    this.#menu = false
    this.#say({ type: 'select', menu: null })
  }

  async #choose(index: number): Promise<void> {
    if (!this.#menu) refuse('conflict', 'no drop-down is open: click one first')
    const chosen = await this.#tab.askAll(choose(index), PATIENCE_MS)
    this.#closeMenu()
    if (chosen !== true) refuse('unprocessable', `expected the number of an option that can be chosen, found ${index}`)
  }

  #failed(error: unknown): void {
    // The end of the browser is reported separately.
    if (this.#over || !this.#running.alive) return
    this.#say({
      type: 'error',
      message:
        error instanceof Refusal
          ? error.message
          : 'the page did not accept the input: it is being closed, or it crashed',
    })
  }
}
