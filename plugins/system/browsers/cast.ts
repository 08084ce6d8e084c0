import type { CDPSession } from 'playwright-core'
import type { ViewPictureFrame } from './contract.js'
import { VIEWPORT } from './chromium.js'
import { answered, type Tab } from './tab.js'
import { ignored } from '../../../sdk/index.js'

/** How long the page must be still before the sharp picture is taken. */
const STILL_MS = 400
const QUALITY = 60

/**
 * The screencast of one page for one viewer: keeps the newest picture; the browser makes the next once it was taken.
 */
export class Cast {
  readonly tab: Tab
  readonly #session: CDPSession
  readonly #changed: () => void
  #waiting: Omit<ViewPictureFrame, 'type'> | undefined
  /** The last picture, to ignore an identical one: making the sharp picture redraws the page. */
  #last = ''
  #taken = false
  #owed: number[] = []
  #timer: NodeJS.Timeout | undefined

  private constructor(tab: Tab, session: CDPSession, changed: () => void) {
    this.tab = tab
    this.#session = session
    this.#changed = changed
    session.on('Page.screencastFrame', ({ data, sessionId }) => this.#moved(data, sessionId))
  }

  static async start(tab: Tab, changed: () => void): Promise<Cast> {
    const cast = new Cast(tab, await answered(tab.page.context().newCDPSession(tab.page)), changed)
    await cast.resume()
    return cast
  }

  /** The newest picture, once. */
  take(): Omit<ViewPictureFrame, 'type'> | undefined {
    const picture = this.#waiting
    if (!picture) return undefined
    this.#waiting = undefined
    this.#taken = true
    return picture
  }

  /** Called when the picture was sent: the browser may make the next. */
  sent(): void {
    this.#taken = false
    this.#acknowledge()
  }

  async pause(): Promise<void> {
    clearTimeout(this.#timer)
    this.#waiting = undefined
    await answered(this.#session.send('Page.stopScreencast'))
  }

  async resume(): Promise<void> {
    this.#last = ''
    this.#owed = []
    const { width: maxWidth, height: maxHeight } = VIEWPORT
    await answered(
      this.#session.send('Page.startScreencast', { format: 'jpeg', quality: QUALITY, maxWidth, maxHeight }),
    )
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#waiting = undefined
    await answered(this.#session.detach()).catch(ignored('the tab is gone'))
  }

  #moved(data: string, sessionId: number): void {
    this.#owed.push(sessionId)
    if (data === this.#last) return this.#acknowledge()
    this.#last = data
    this.#waiting = { data, format: 'jpeg' }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#still(data), STILL_MS)
    this.#changed()
  }

  async #still(of: string): Promise<void> {
    const data = await this.tab.picture().catch(() => undefined)
    if (data === undefined || this.#last !== of) return
    this.#waiting = { data, format: 'webp' }
    this.#changed()
  }

  /** Acknowledges the browser's pictures, unless one is waiting or being sent. */
  #acknowledge(): void {
    if (this.#taken || this.#waiting?.format === 'jpeg') return
    for (const sessionId of this.#owed.splice(0))
      void this.#session.send('Page.screencastFrameAck', { sessionId }).catch(ignored('the tab is gone'))
  }
}
