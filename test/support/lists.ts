import { randomInt } from 'node:crypto'

/** `npm run crash`, and `SANDBOX_TESTS=every`: nothing is left out, however alike cases are. */
const EVERY_ONE = process.env['SANDBOX_CRASH_KILLS'] !== undefined || process.env['SANDBOX_TESTS'] === 'every'

/** Whether a run is a whole one: `SANDBOX_TESTS=all`, which `.ci/run` sets. */
export const EVERY_CASE = EVERY_ONE || process.env['SANDBOX_TESTS'] === 'all'

/** A pattern that matches a list with exactly these items: a plain list as pattern also matches a longer one. */
export const exactly = (...items: readonly unknown[]): { readonly length: number } => ({
  ...items,
  length: items.length,
})

/** A pattern that matches a list that begins with these items. */
export const beginning = (...items: readonly unknown[]): readonly unknown[] => items

/** The same in each run, except in `npm run crash`; `SANDBOX_CRASH_SEED` sets it. A test's name says which it had. */
export const crashSeed = (): number =>
  Number(
    process.env['SANDBOX_CRASH_SEED']
      ?? (process.env['SANDBOX_CRASH_KILLS'] === undefined ? 20_262 : randomInt(1_000_000)),
  )

/**
 * Of a long list of like cases the same few in each run, spread over the list. A whole run has every one, or as many as
 * `whole`, where each takes seconds and is of a kind with its neighbours; `SANDBOX_TESTS=every` has these too.
 */
export const spread = <T>(cases: readonly T[], few: number, whole = Infinity): readonly T[] => {
  const most = EVERY_ONE ? Infinity : Math.ceil(EVERY_CASE ? whole : few)
  return cases.length <= most
    ? cases
    : Array.from({ length: most }, (_, at) => cases[Math.floor((at * cases.length) / most)]!)
}
