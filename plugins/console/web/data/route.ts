import { signal } from '@preact/signals-core'
import { fragmentOf, pagePlaceOf, type PagePlace } from './place.js'

export { fragmentOf } from './place.js'

export const place = signal<PagePlace>([])

const follow = (fragment: string): void => {
  const next = pagePlaceOf(fragment)
  if (fragmentOf(...next) !== fragmentOf(...place.peek())) place.value = next
}

/** Navigates to an address. */
export const goTo = (...parts: readonly string[]): void => {
  const fragment = fragmentOf(...parts)
  location.hash = fragment
  // At once, not with the event that follows: the next key is meant for the place that it leads to.
  follow(fragment)
}

/** Navigates to an address, which replaces the current one in the history. */
export const showPlace = (fragment: string): void => {
  history.replaceState(null, '', location.pathname + fragment)
  place.value = pagePlaceOf(fragment)
}

/** Follows the address of the page. */
export const watchPlace = (): void => {
  const conversation = new URLSearchParams(location.search).get('conversation')
  if (conversation) history.replaceState(null, '', location.pathname + fragmentOf('c', conversation))
  const read = () => follow(location.hash)
  addEventListener('hashchange', read)
  read()
}
