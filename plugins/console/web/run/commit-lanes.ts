/** What a history is drawn from. */
export interface LanedCommit {
  readonly sha: string
  readonly parents: readonly string[]
}

/** How one commit is drawn in the graph of a history, newest first. */
export interface CommitLane {
  /** The column of the commit. */
  readonly lane: number
  /** A line comes from above into the commit. */
  readonly fromAbove: boolean
  /** Columns whose lines pass by. */
  readonly through: readonly number[]
  /** Columns whose lines end in this commit. */
  readonly joins: readonly number[]
  /** Columns to which lines lead from it: its parents. */
  readonly leads: readonly number[]
}

/** The columns of commits, so that each line leads from a commit to its parents. */
export const lanesOf = (commits: readonly LanedCommit[]): CommitLane[] => {
  const waiting: (string | undefined)[] = []
  const free = () => {
    const at = waiting.indexOf(undefined)
    return at < 0 ? waiting.length : at
  }
  return commits.map(({ sha, parents }) => {
    const ends = waiting.flatMap((one, at) => (one === sha ? [at] : []))
    const lane = ends[0] ?? free()
    for (const at of ends) waiting[at] = undefined
    const through = waiting.flatMap((one, at) => (one === undefined ? [] : [at]))
    const leads = parents.map((parent, order) => {
      const known = waiting.indexOf(parent)
      // The first parent stays in the commit's own column.
      const at = known >= 0 ? known : order === 0 && waiting[lane] === undefined ? lane : free()
      waiting[at] = parent
      return at
    })
    while (waiting.length && waiting.at(-1) === undefined) waiting.pop()
    return { lane, fromAbove: ends.length > 0, through, joins: ends.slice(1), leads }
  })
}
