import { refuse } from '../../../sdk/index.js'
import type { GitFailure } from '../../../sdk/node/programs/git.js'
import {
  failedFilter,
  filterIn,
  isMissingProgram,
  withoutFilter,
  type Conversion,
} from '../../../sdk/node/repositories/conversion.js'

/** The steps of a conversion in which filters may run. */
export interface FilteredWork {
  /** The filters that attributes name, by path or once. */
  used(): Promise<readonly string[]>
  /** Converts without a filter. */
  plain(): Promise<unknown>
  /** Converts with these settings, behind a wall. */
  walled(settings: readonly string[]): Promise<unknown>
}

/**
 * Runs a conversion with the filters that its paths have.
 *
 * A filter whose program is missing does not count: the files then have the form that git stores, as the person's own
 * git leaves them; then this returns false. One that fails otherwise is refused: its files could be written in a form
 * that loses their content.
 */
export const withFilters = async (filters: Conversion['filters'], work: FilteredWork): Promise<boolean> => {
  const named = filters.size === 0 ? [] : await work.used()
  const used = new Set([...filters.keys()].map(filterIn).filter(filter => named.includes(filter)))
  if (used.size === 0) {
    await work.plain()
    return true
  }
  const all = used.size
  for (let settings = [...filters].filter(([name]) => used.has(filterIn(name))); ;) {
    try {
      await work.walled(settings.map(([name, value]) => `${name}=${value}`))
      return used.size === all
    } catch (error) {
      const failed = failedFilter(error)
      if (!failed || !used.delete(failed.filter)) throw error
      const { path, filter } = failed
      const failure = error as GitFailure
      if (!isMissingProgram(failure)) {
        const words = failure.stderr.trim().split('\n')[0]!.slice(0, 300)
        refuse('unprocessable', `the filter ${filter} of ${path} failed, so nothing was compared or written: ${words}`)
      }
      settings = [...settings, ...withoutFilter(filter)]
    }
  }
}
