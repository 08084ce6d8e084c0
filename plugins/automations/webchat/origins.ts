/** Why a text is no origin of a page, as browsers send it; undefined: it is one. */
export const originProblem = (text: string): string | undefined => {
  const shown = JSON.stringify(text.slice(0, 200))
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    return `expected the origin of a page, such as https://www.example.org, found ${shown}`
  // A browser sends lower case, and no port that is the scheme's own.
  if (url.origin === text) return undefined
  return `expected an origin as browsers send it: ${JSON.stringify(url.origin.slice(0, 200))}, found ${shown}`
}

/** Whether a page's origin is on a list: the same text, so that no other spelling of it is. */
export const admitsOrigin = (allowed: readonly string[] | undefined, origin: string): boolean =>
  allowed?.includes(origin) === true && originProblem(origin) === undefined
