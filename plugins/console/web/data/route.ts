import { signal } from '@preact/signals-core'
import { fragmentOf, pagePlaceOf, type PagePlace } from './place.js'

export { fragmentOf } from './place.js'

export const place = signal<PagePlace>([])

/** Navigates to an address. */
export const goTo = (...parts: readonly string[]): void => {
  location.hash = fragmentOf(...parts)
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
  const read = () => {
    place.value = pagePlaceOf(location.hash)
  }
  addEventListener('hashchange', read)
  read()
}
