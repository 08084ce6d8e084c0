/** The part of the window that these keys move by; the others move to an end. */
const STEPS: { readonly [key: string]: number } = {
  ...{ ArrowUp: -0.1, ArrowDown: 0.1, PageUp: -0.9, PageDown: 0.9, ' ': 0.9, Home: -Infinity, End: Infinity },
}
const SCROLLERS = '.list-box, .page-body, .scrolls, .side-list'

/**
 * Whether the keys of this element scroll nothing by themselves: nothing has the focus, or a field without more
 * lines.
 */
const isIdle = (target: Element, key: string): boolean =>
  target.matches('body, .page')
  || (target.matches('textarea') && key.startsWith('Page') && target.scrollHeight <= target.clientHeight)

/** The largest part of the page that scrolls. */
const mainScroller = (): Element | undefined => {
  const width = (one: Element) => one.getBoundingClientRect().width
  return [...document.querySelectorAll(`.page :is(${SCROLLERS})`)]
    .filter(one => one.scrollHeight > one.clientHeight)
    .sort((one, other) => width(other) - width(one))[0]
}

/**
 * Scrolls the page by a key that no element takes: browsers scroll the document then, which is never higher than the
 * window.
 */
export const scrollByKey = (event: KeyboardEvent, target: Element): void => {
  const { key, shiftKey } = event
  const step = STEPS[key]
  if (step === undefined || event.altKey || event.ctrlKey || event.metaKey || !isIdle(target, key)) return
  const box = mainScroller()
  if (!box) return
  event.preventDefault()
  // A list that follows its end notices in which direction it goes.
  box.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey }))
  const by = key === ' ' && shiftKey ? -step : step
  box.scrollTop = Number.isFinite(by) ? box.scrollTop + by * box.clientHeight : by > 0 ? box.scrollHeight : 0
}
