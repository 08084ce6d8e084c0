/** The day since 1970. */
const DAY = Math.floor(Date.now() / 86_400_000)
/** `npm run crash` runs every case, and any other run with this setting. */
const ALL = process.env['SANDBOX_CRASH_KILLS'] !== undefined || process.env['SANDBOX_TESTS'] === 'all'

/** A pattern that matches a list with exactly these items: a plain list as pattern also matches a longer one. */
export const exactly = (...items: readonly unknown[]): { readonly length: number } => ({
  ...items,
  length: items.length,
})

/** A pattern that matches a list that begins with these items. */
export const beginning = (...items: readonly unknown[]): readonly unknown[] => items

/** Of a long list of like tests, those that run today: one of `days`, so that all have run once after so many days. */
export const byTurns = <T>(tests: readonly T[], days: number): readonly T[] =>
  tests.filter((_, at) => ALL || at % days === DAY % days)
