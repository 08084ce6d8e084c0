interface Point {
  readonly x: number
  readonly y: number
}

/** A press within this time after something moved below the pointer was meant for what was there before. */
const SETTLE_MS = 600
/** What is pressed as one thing. */
const PARTS = 'article, .item, .card.open'
/** What moves less is still below the pointer. */
const LEAST_PX = 8

/**
 * Drops presses of a pointer on what has just moved: as a list changes by itself, its parts move below the pointer, and
 * a press would act on another one than the person meant; a line says so. Keys, and a pointer that has moved since,
 * are not affected.
 *
 * @returns A function that ends it.
 */
export const steadyPresses = (area: HTMLElement): (() => void) => {
  const places = new Map<Element, number>()
  const moved = new Map<Element, { readonly at: number; readonly pointer: Point }>()
  let pointer: Point = { x: -1, y: -1 }
  const look = (says: boolean) => {
    const parts = new Set(area.querySelectorAll(PARTS))
    for (const part of places.keys()) if (!parts.has(part)) places.delete(part)
    for (const part of parts) {
      const place = part.getBoundingClientRect().top + area.scrollTop
      const before = places.get(part)
      if (says && before !== undefined && Math.abs(place - before) > LEAST_PX)
        moved.set(part, { at: performance.now(), pointer })
      places.set(part, place)
    }
  }
  look(false)
  // After the layout of the change; what a person opens or types in a part moves those below it as well.
  const watch = new MutationObserver(() => look(true))
  watch.observe(area, { childList: true, subtree: true, characterData: true })
  const resized = () => look(false)
  const follow = ({ clientX: x, clientY: y }: PointerEvent) => {
    pointer = { x, y }
  }
  const press = (event: MouseEvent) => {
    const { target } = event
    // A link only leads elsewhere, which is taken back by the next press.
    const isOurs = target instanceof Element && area.contains(target) && !target.closest('a')
    const part = isOurs ? target.closest(PARTS) : null
    const last = part && moved.get(part)
    if (event.detail === 0 || !last || performance.now() - last.at > SETTLE_MS) return
    const way = Math.hypot(event.clientX - last.pointer.x, event.clientY - last.pointer.y)
    // Who has aimed since then has seen it; a finger does not aim.
    if (way > LEAST_PX && !(event instanceof PointerEvent && event.pointerType === 'touch')) return
    event.preventDefault()
    event.stopPropagation()
    void import('./dropped-press.js').then(({ sayDropped }) => sayDropped())
  }
  area.addEventListener('pointermove', follow)
  addEventListener('resize', resized)
  addEventListener('click', press, { capture: true })
  return () => {
    watch.disconnect()
    removeEventListener('resize', resized)
    area.removeEventListener('pointermove', follow)
    removeEventListener('click', press, { capture: true })
  }
}
