/** Whether a line of the output can be left out. It is called with every line, in order. */
export type LineRule = (line: string) => boolean

/** What shortens the output of some programs before a model reads it. */
export interface LineCleaner {
  readonly id: string
  readonly label: string
  /** The programs whose output it shortens. */
  readonly commands: readonly string[]
  /** It shortens no output of programs that nobody knows. */
  readonly narrow?: boolean
  /** Begins an output. */
  readonly begin: () => LineRule
}

/** A cleaner that leaves out the lines that one of these patterns describes. */
export const cleanerOf = (
  id: string,
  label: string,
  commands: readonly string[],
  patterns: readonly RegExp[],
): LineCleaner => {
  // One expression is many times faster than a list of them.
  const any = new RegExp(patterns.map(({ source }) => `(?:${source})`).join('|'))
  return { id, label, commands, begin: () => line => any.test(line) }
}
