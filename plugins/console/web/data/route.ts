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

/** The place that a link to the page names; undefined: it names none. */
const namedPlace = (search: string): string | undefined => {
  const fields = new URLSearchParams(search)
  const conversation = fields.get('conversation')
  if (conversation) return fragmentOf('c', conversation)
  return fields.has('approval') ? fragmentOf('inbox') : undefined
}

/** Follows the address of the page, and notifications that are opened. */
export const watchPlace = (): void => {
  const named = namedPlace(location.search)
  if (named !== undefined) history.replaceState(null, '', location.pathname + named)
  navigator.serviceWorker?.addEventListener('message', ({ data }: MessageEvent<{ kind?: string; search?: string }>) => {
    const place = data.kind === 'sandbox.show' ? namedPlace(data.search ?? '') : undefined
    if (place !== undefined) location.hash = place
  })
  const read = () => follow(location.hash)
  addEventListener('hashchange', read)
  read()
}
