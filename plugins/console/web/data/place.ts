/** A place of the page: its parts after `#/`, decoded. */
export type PagePlace = readonly string[]

/** The place that a fragment names; an unknown or broken one is the first page. */
export const pagePlaceOf = (hash: string): PagePlace => {
  if (!hash.startsWith('#/')) return []
  try {
    return hash.slice(2).split('/').filter(Boolean).map(decodeURIComponent)
  } catch {
    return []
  }
}

/** The fragment of a place. */
export const fragmentOf = (...parts: readonly string[]): string => `#/${parts.map(encodeURIComponent).join('/')}`
