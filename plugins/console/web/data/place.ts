/** An address of the page: its parts after `#/`, decoded. */
export type PagePlace = readonly string[]

/** The address in a fragment; an unknown or invalid one is the first page. */
export const pagePlaceOf = (hash: string): PagePlace => {
  if (!hash.startsWith('#/')) return []
  try {
    return hash.slice(2).split('/').filter(Boolean).map(decodeURIComponent)
  } catch {
    return []
  }
}

/** The fragment of an address. */
export const fragmentOf = (...parts: readonly string[]): string => `#/${parts.map(encodeURIComponent).join('/')}`
