import type { RefObject } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'

/** The distance from the end that counts as the end, in pixels. */
const NEAR = 32
/** The distance from the beginning at which what comes before is wanted. */
const EARLY = 400
/** A browser that does not report the end of a scroll has ended it after this time without one. */
const REST_MS = 150
const UP_KEYS = new Set(['ArrowUp', 'PageUp', 'Home'])
const DOWN_KEYS = new Set(['ArrowDown', 'PageDown', 'End', ' '])

interface FollowingEvents {
  /** The beginning is near. */
  readonly onStart: () => void
  /** The person came back to the end. */
  readonly onEnd: () => void
}

/** The way a list that grows at its end is read: it follows the end until the person scrolls up. */
class Following {
  /** Whether the end stays in view. */
  on: boolean
  readonly #box: RefObject<HTMLElement | null>
  readonly #follows: () => boolean
  readonly #events: FollowingEvents
  /** The newest input was downwards: none upwards starts following, wherever the scroll ends. */
  #down = false
  /** The scroll bar is held. */
  #bar: { readonly from: number; readonly on: boolean } | undefined
  #touchY = 0
  #rest: ReturnType<typeof setTimeout> | undefined

  constructor(box: RefObject<HTMLElement | null>, follows: () => boolean, events: FollowingEvents) {
    this.#box = box
    this.#follows = follows
    this.#events = events
    this.on = follows()
  }

  readonly onWheel = ({ deltaY, ctrlKey }: WheelEvent): void => {
    // With the control key it zooms.
    if (deltaY !== 0 && !ctrlKey) this.#meant(deltaY > 0)
  }

  readonly onTouchStart = ({ touches }: TouchEvent): void => {
    this.#touchY = touches[0]?.clientY ?? 0
  }

  readonly onTouchMove = ({ touches }: TouchEvent): void => {
    const y = touches[0]?.clientY ?? this.#touchY
    if (Math.abs(y - this.#touchY) <= 4) return
    // The content goes down with the finger, so that earlier rows appear.
    this.#meant(y < this.#touchY)
    this.#touchY = y
  }

  readonly onKeyDown = (event: KeyboardEvent): void => {
    const { key, shiftKey, target } = event
    if (target instanceof HTMLElement && target.matches('input, textarea, select')) return
    if (key === 'End' && target === this.#box.current && this.#follows()) {
      // Not the end as it is now: what is added while it scrolls belongs to it.
      event.preventDefault()
      this.start()
      return
    }
    if (UP_KEYS.has(key) || (key === ' ' && shiftKey)) this.#meant(false)
    else if (DOWN_KEYS.has(key)) this.#meant(true)
  }

  readonly onPointerDown = (event: PointerEvent): void => {
    const box = this.#box.current
    if (!box || event.target !== box) return
    const { offsetX } = event
    if (offsetX >= 0 && offsetX < box.clientWidth) return
    this.#bar = { from: box.scrollTop, on: this.on }
    this.on = false
  }

  readonly onScroll = (): void => {
    if (this.on) return
    clearTimeout(this.#rest)
    this.#rest = setTimeout(this.onScrollEnd, REST_MS)
  }

  /** A scroll has ended: the position is judged now, because in the frame of the input it is the one before. */
  readonly onScrollEnd = (): void => {
    clearTimeout(this.#rest)
    if (!this.#bar) this.#judge()
    if (this.#early()) this.#events.onStart()
  }

  /** The scroll bar was released, or the pointer moves without a button: not every browser reports the first. */
  readonly onRelease = ({ type, buttons }: PointerEvent): void => {
    const box = this.#box.current
    if (!this.#bar || !box || (type === 'pointermove' && buttons !== 0)) return
    const { from, on } = this.#bar
    this.#bar = undefined
    const moved = box.scrollTop - from
    this.#down = moved > 0
    if (moved === 0) this.on = on
    else this.#judge()
  }

  /** What a person selects stays where it is. */
  readonly onSelection = (): void => {
    const selected = getSelection()
    if (selected && !selected.isCollapsed && this.#box.current?.contains(selected.anchorNode)) this.on = false
  }

  stop(): void {
    this.on = false
    this.#down = false
  }

  /** Goes to the end and stays there. */
  start(): void {
    this.on = this.#follows()
    const box = this.#box.current
    if (box) box.scrollTop = box.scrollHeight
    this.#events.onEnd()
  }

  #meant(down: boolean): void {
    this.#down = down
    if (!down) {
      this.on = false
      // At the beginning it does not scroll.
      if (this.#early()) this.#events.onStart()
    } else if (!this.on) this.#judge()
  }

  #judge(): void {
    const { scrollHeight = 0, scrollTop = 0, clientHeight = 0 } = this.#box.current ?? {}
    if (this.#follows() && this.#down && scrollHeight - scrollTop - clientHeight < NEAR) this.start()
  }

  #early(): boolean {
    return (this.#box.current?.scrollTop ?? Infinity) < EARLY
  }
}

/** Has a list follow its end as a person reads it. */
export const useFollowing = (
  box: RefObject<HTMLElement | null>,
  follows: () => boolean,
  events: FollowingEvents,
): Following => {
  const following = useMemo(() => new Following(box, follows, events), [])
  useEffect(() => {
    const ends = new AbortController()
    const { signal } = ends
    for (const type of ['pointerup', 'pointercancel', 'pointermove'] as const)
      addEventListener(type, following.onRelease, { signal, passive: true })
    document.addEventListener('selectionchange', following.onSelection, { signal })
    return () => ends.abort()
  }, [])
  return following
}
