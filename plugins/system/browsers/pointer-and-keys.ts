import type { ViewClientFrame, ViewKeyFrame, ViewMouseFrame } from './contract.js'
import { refuse } from '../../../sdk/index.js'
import { answered, type Tab } from './tab.js'

const PATIENCE_MS = 5000
const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'] as const
/** Bits of `buttons` (UI Events, section 4.3.1), in the order of their numbers. */
const MASKS = [1, 4, 2, 8, 16] as const
const DOUBLE_MS = 500
const NEAR = 5
/** Larger than any page, and within the protocol's numbers. */
const FARTHEST = 100_000

const within = (number: number): number => Math.max(-FARTHEST, Math.min(FARTHEST, number))

/** One person's mouse and keyboard on the pages of a browser. */
export class PointerAndKeys {
  #held = 0
  #clicks = 0
  #last = { at: -Infinity, x: 0, y: 0, button: 0 }

  /** Performs a mouse action; `at` is when it was received, which may be a while ago. */
  async mouse(tab: Tab, { action, button = 0, ...frame }: ViewMouseFrame, at: number): Promise<void> {
    const [x, y] = [within(frame.x), within(frame.y)]
    const mask = MASKS[button] ?? 1
    if (action === 'down') {
      this.#held |= mask
      this.#count(at, x, y, button)
    }
    if (action === 'up') this.#held &= ~mask
    const pressed = action === 'down' || action === 'up' ? button : MASKS.findIndex(each => (this.#held & each) !== 0)
    await answered(
      tab.session.send('Input.dispatchMouseEvent', {
        type: TYPES[action],
        x,
        y,
        buttons: this.#held,
        button: BUTTONS[pressed] ?? 'none',
        ...(action === 'down' || action === 'up' ? { clickCount: this.#clicks } : {}),
        ...(action === 'wheel' ? { deltaX: within(frame.deltaX ?? 0), deltaY: within(frame.deltaY ?? 0) } : {}),
      }),
      PATIENCE_MS,
    )
  }

  /** Presses a key with its modifiers; inserts a character that has no key as text. */
  async key({ page }: Tab, { key, ctrl, shift, alt }: ViewKeyFrame): Promise<void> {
    const beside = [ctrl && 'Control', shift && 'Shift', alt && 'Alt'].filter(name => typeof name === 'string')
    try {
      for (const name of beside) await answered(page.keyboard.down(name), PATIENCE_MS)
      await answered(page.keyboard.press(key), PATIENCE_MS)
    } catch (error) {
      if (!/Unknown key/.test((error as Error).message)) throw error
      if ([...key].length !== 1)
        refuse('invalid', `expected the name of a key such as Enter, found ${JSON.stringify(key)}`)
      await answered(page.keyboard.insertText(key), PATIENCE_MS)
    } finally {
      for (const name of beside) await answered(page.keyboard.up(name), PATIENCE_MS)
    }
  }

  async text({ page }: Tab, text: string): Promise<void> {
    await answered(page.keyboard.insertText(text), PATIENCE_MS)
  }

  /** Releases held keys and buttons when the viewer has left. */
  async release(tab: Tab): Promise<void> {
    const { x, y } = this.#last
    for (const [button, mask] of MASKS.entries())
      if (this.#held & mask) await this.mouse(tab, { type: 'mouse', action: 'up', x, y, button }, this.#last.at)
  }

  /** Presses close in place and time count as double or triple clicks. */
  #count(at: number, x: number, y: number, button: number): void {
    const again =
      at - this.#last.at < DOUBLE_MS
      && Math.abs(x - this.#last.x) <= NEAR
      && Math.abs(y - this.#last.y) <= NEAR
      && button === this.#last.button
    this.#clicks = again ? Math.min(3, this.#clicks + 1) : 1
    this.#last = { at, x, y, button }
  }
}

const TYPES = { move: 'mouseMoved', down: 'mousePressed', up: 'mouseReleased', wheel: 'mouseWheel' } as const

/** Whether a frame acts on the page instead of only changing the view. */
export const acts = ({ type }: ViewClientFrame): boolean =>
  type === 'mouse' || type === 'text' || type === 'key' || type === 'selectOption'
