/** The number of acknowledged requests or observed events of each kind. */
export interface Counts {
  readonly [name: string]: number
}

/**
 * The required number of each kind in two hundred kills, a fifth of the usual number: a run with fewer
 * proves little.
 */
const FLOORS: Counts = {
  started: 40,
  queued: 20,
  said: 2,
  reply: 2,
  stop: 20,
  withdraw: 6,
  order: 6,
  land: 6,
  'landed files': 8,
  rewind: 6,
  discard: 4,
  archive: 3,
  purge: 2,
  mint: 15,
  revoke: 8,
  settings: 4,
}

/** The same for turns of agents that people bring, which are killed a quarter as often. */
export const AGENT_FLOORS: Counts = {
  sent: 20,
  'native turns': 4,
  'program turns': 4,
  'server calls': 4,
}

/** A message for each kind that a run had too few of. */
export const tooFew = (counts: Counts, kills: number, floors: Counts = FLOORS): string[] =>
  Object.entries(floors).flatMap(([name, floor]) => {
    const least = Math.floor((floor * kills) / 200)
    const had = counts[name] ?? 0
    return had < least ? [`expected at least ${least} × ${name} in ${kills} kills, found ${had}`] : []
  })

/** The sums of the counts of several lanes. */
export const together = (lanes: readonly Counts[]): Counts =>
  lanes.reduce(
    (sum, counts) =>
      Object.fromEntries(
        [...new Set([...Object.keys(sum), ...Object.keys(counts)])].map(name => [
          name,
          (sum[name] ?? 0) + (counts[name] ?? 0),
        ]),
      ),
    {},
  )
