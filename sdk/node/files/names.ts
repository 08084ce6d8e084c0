import { join } from 'node:path'
import { refuse } from '../../refusal.js'

const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/
/** What files of the kernel end with; a folder with such a name could stand where a file belongs. */
const RESERVED = /\.(events|jsonl|json)$/

/** The parts of a stored thing's name, or the refusal that says what is wrong with it. */
export const segments = (name: string, least = 1): string[] => {
  const parts = name.split('/')
  const fits =
    parts.length >= least
    && parts.length <= 8
    && parts.every((part, i) => SEGMENT.test(part) && (i === parts.length - 1 || !RESERVED.test(part)))
  if (fits) return parts
  const rule = 'letters, digits, "_", "." and "-", at most 128 each, none but the last ending like a file of the daemon'
  return refuse('invalid', `name: expected ${least} to 8 parts of ${rule}, found ${JSON.stringify(name.slice(0, 200))}`)
}

/** The folder in which names that begin with a prefix live, as parts; the rest of the prefix begins a name in it. */
export const prefixFolder = (prefix: string): string[] => {
  const parts = prefix.split('/')
  const begun = parts.pop() ?? ''
  if (begun !== '' && !SEGMENT.test(begun)) refuse('invalid', 'prefix: expected the beginning of a name')
  return parts.length > 0 ? segments(parts.join('/')) : []
}

/** Where a stored thing lies below its folder. */
export const placeOfName = (folder: string, name: string, extension: string, least = 1): string =>
  `${join(folder, ...segments(name, least))}${extension}`
