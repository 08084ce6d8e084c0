/** Prints the figures of every benchmark. Only ratios within a run count, so no figure is stored. */

/** A short run that only shows that a benchmark works: its figures mean nothing. */
export const quick = process.argv.includes('--quick')

/** The arguments of a benchmark's command line. */
export const asked = process.argv.slice(2).filter(word => word !== '--quick')

/** One row of the table that `npm run bench` ends with. */
export interface Verdict {
  readonly what: string
  readonly figure: string
  readonly target: string
  readonly reached: boolean
}

/** The duration of some work in milliseconds. */
export const timed = async (work: () => unknown): Promise<number> => {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** The value below which `part` of the values lies; 0.5 gives the median. */
export const quantile = (values: readonly number[], part: number): number =>
  [...values].sort((one, other) => one - other)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? NaN

export const median = (values: readonly number[]): number => quantile(values, 0.5)

export const ms = (time: number): string => `${time.toFixed(time < 10 ? 1 : 0)} ms`
export const x = (ratio: number): string => `${ratio.toFixed(2)}x`
export const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`

export const print = (what: string, figure: string, more = ''): void =>
  console.log(`  ${what.padEnd(66)} ${figure.padStart(18)}  ${more}`)

interface Wanted {
  readonly most?: number
  readonly least?: number
  /** Formats a figure. */
  readonly as: (figure: number) => string
}

/** Prints a figure with its target and whether it was reached, and reports it to the runner. */
export const verdict = (what: string, figure: number, { most, least, as }: Wanted): void => {
  const reached = most !== undefined ? figure <= most : figure >= (least ?? NaN)
  const target = most !== undefined ? `at most ${as(most)}` : `at least ${as(least ?? NaN)}`
  print(what, as(figure), `target ${target}: ${reached ? 'reached' : 'MISSED'}`)
  process.send?.({ what, figure: as(figure), target, reached } satisfies Verdict)
}

/** The figures of the compared functions, one list for each. */
export type Rounds<Name extends string> = { readonly [name in Name]: number[] }

/**
 * Runs functions alternately, in one order and then in the other, and returns the results of each round.
 *
 * The rounds of two functions are pairs: on a shared machine their ratio says more than the best or the mean of either.
 */
export const inTurns = async <Name extends string>(
  works: { readonly [name in Name]: () => number | Promise<number> },
  rounds: number,
): Promise<Rounds<Name>> => {
  const names = Object.keys(works) as Name[]
  const found = Object.fromEntries(names.map(name => [name, []])) as unknown as Rounds<Name>
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) found[name].push(await works[name]())
  }
  return found
}

/** The median of the ratios of two lists, round by round. */
export const ratio = (of: readonly number[], to: readonly number[]): number =>
  median(of.map((value, round) => value / (to[round] ?? NaN)))
