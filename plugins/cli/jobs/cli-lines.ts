import type { CliLine } from '../contract.js'

/** A longer line that is no object of the program's is cut. */
const MOST_TEXT = 64 * 1024

/** A line that the program printed. */
export const cliLineOf = (text: string): CliLine => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && 'kind' in value && typeof value.kind === 'string')
      return value as CliLine
  } catch {
    // A line of another form.
  }
  return { kind: 'text', text: text.slice(0, MOST_TEXT).toWellFormed() }
}

/** A job keeps so many characters of its output: a build can print any amount. */
const MOST_SAID = 8 * 1024 * 1024
const CUT = 'it says more than is kept: from here on only what is done is noted'

/** Passes on the lines of a job; of what is said on the way no more than so many characters. */
export const keptLines = (most = MOST_SAID): ((line: CliLine) => CliLine[]) => {
  let left = most
  return line => {
    if (line.kind !== 'log' && line.kind !== 'text') return [line]
    if (left < 0) return []
    left -= String(line.message ?? line.text).length
    return left < 0 ? [{ kind: 'log', message: CUT, level: 'warn' }] : [line]
  }
}

/** The last lines of what a program wrote. */
export const lastLines = (text: string, most: number): string => text.trimEnd().split('\n').slice(-most).join('\n')

/** How a job ended: the last line of its file, which no reader gets. */
export interface JobEnd extends CliLine {
  readonly kind: 'ended'
  readonly code: number
  readonly signal?: string
  /** The end of what its last command wrote on standard error. */
  readonly errors: string
}

/** Whether a line says how the job ended. */
export const isJobEnd = (line: CliLine): line is JobEnd => line.kind === 'ended' && typeof line.code === 'number'
