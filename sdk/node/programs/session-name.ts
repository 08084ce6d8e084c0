import { createHash } from 'node:crypto'

const MOST = 60
const HASHED = 6

/** The name of a terminal of a folder or repository: `panel-<place>--<what>`, or `panel-<what>` for the root. */
export const sessionName = (place: string, what: string): string => {
  const parts = [...(place === '' || place === '.' ? [] : [place.replaceAll('/', '--')]), what]
  const name = `panel-${parts.join('--').replace(/[^A-Za-z0-9_-]/g, '_')}`
  if (name.length <= MOST) return name
  const hash = createHash('sha256')
    .update(JSON.stringify([place, what]))
    .digest('hex')
    .slice(0, HASHED)
  return `${name.slice(0, MOST - HASHED - 1)}-${hash}`
}
