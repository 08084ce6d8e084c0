import { served } from '../data/live.js'
import { person } from '../data/session/session.js'
import { PAGES, reaches, type ConsolePageEntry } from '../pages/registry.js'

/** Whether the person may see a page, and the daemon serves its call. */
export const pageIsVisible = ({ role, needs }: Pick<ConsolePageEntry, 'role' | 'needs'>): boolean =>
  reaches(person.value?.role, role) && (served.value.size === 0 || served.value.has(needs))

/** The pages that the navigation names for this person. */
export const listedPages = (): readonly ConsolePageEntry[] => PAGES.filter(page => page.listed && pageIsVisible(page))
