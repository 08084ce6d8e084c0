import { signal } from '@preact/signals-core'
import { fragmentOf, pagePlaceOf, type PagePlace } from './place.js'

export { fragmentOf } from './place.js'

export const place = signal<PagePlace>([])

/** Goes to a place. */
export const goTo = (...parts: readonly string[]): void => {
  location.hash = fragmentOf(...parts)
}

/** Goes to a place, which takes that of the present one in the history. */
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
