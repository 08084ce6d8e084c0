import { BUILD_CLEANERS } from './build-cleaners.js'
import type { LineCleaner } from './cleaner.js'
import { PACKAGE_CLEANERS } from './package-cleaners.js'
import { TEST_CLEANERS } from './test-cleaners.js'
import { WORK_CLEANERS } from './work-cleaners.js'

/** A cleaner, as people choose it. */
export interface CatalogueCleaner {
  readonly id: string
  readonly label: string
  /** The programs whose output it shortens; empty: all. */
  readonly commands: readonly string[]
}

/** The cleaners for output of one kind of program. */
export const LINE_CLEANERS: readonly LineCleaner[] = [
  ...TEST_CLEANERS,
  ...BUILD_CLEANERS,
  ...PACKAGE_CLEANERS,
  ...WORK_CLEANERS,
]

/** Every cleaner of command outputs. */
export const CATALOGUE: readonly CatalogueCleaner[] = [
  { id: 'escapes', label: 'Colours and other escape sequences of terminals', commands: [] },
  { id: 'progress', label: 'Progress bars, spinners and lines that were drawn over', commands: [] },
  { id: 'repeats', label: 'Equal lines in a row, which are counted', commands: [] },
  ...LINE_CLEANERS.map(({ id, label, commands }) => ({ id, label, commands })),
]

const IDS = CATALOGUE.map(({ id }) => id)

/** The ids of the cleaners that a value of the setting names, or why it names none. */
export const chosenCleaners = (
  value: string,
): { readonly ids: ReadonlySet<string> } | { readonly expected: string; readonly found: string } => {
  const text = value.trim()
  if (text === 'off') return { ids: new Set() }
  const words = text === '' ? [] : text.split(',').map(word => word.trim())
  const leftOut = words.filter(word => word.startsWith('-')).map(word => word.slice(1))
  if (leftOut.length > 0 && leftOut.length < words.length)
    return { expected: 'only cleaners to use (a,b) or only ones to leave out (-a,-b)', found: text }
  const named = leftOut.length > 0 ? leftOut : words
  const wrong = named.find(word => !IDS.includes(word))
  if (wrong !== undefined) return { expected: `off, nothing (all), or some of ${IDS.join(', ')}`, found: wrong }
  if (words.length === 0 || leftOut.length > 0) return { ids: new Set(IDS.filter(id => !leftOut.includes(id))) }
  return { ids: new Set(named) }
}
