import type { ProbeFacts } from '../contract.js'

/** A measurement cannot be taken here: the message names what is missing. */
export class ProbeUnavailable extends Error {}

/** A measurement went wrong: the message says how. */
export class ProbeFailed extends Error {}

/** What a program of a measurement printed. */
export interface ProbeOutput {
  readonly code: number
  readonly text: string
  readonly errors: string
}

/** A folder of the repository with a manifest, and its package manager. */
export interface MeasuredProject {
  /** From the root of the repository; empty for that itself. */
  readonly dir: string
  readonly manager: string
  /** The file that tells the package manager. */
  readonly evidence: string
  /** How many of the packages that it declares are not installed; left out: none, or not known. */
  readonly missing?: number
}

/** What a measurement can use: everything is read only, and paths are from the root of the repository. */
export interface ProbeTools {
  /**
   * Runs a program of the machine, or one of the repository by its path, in a folder; its temporary files are removed.
   *
   * @throws ProbeUnavailable if the machine has no such program; ProbeFailed if it takes too long or prints too much.
   */
  run(dir: string, program: string, args: readonly string[]): Promise<ProbeOutput>
  /** The text of a file of at most 32 MiB; undefined: there is none. */
  text(path: string): Promise<string | undefined>
  has(path: string): Promise<boolean>
  /** The projects of the repository, without those of repositories in it. */
  projects(): Promise<MeasuredProject[]>
}

/** What a measurement found, and what it left out. */
export interface ProbeFinding {
  readonly facts: ProbeFacts
  readonly reason?: string
}

/** One kind of measurement. */
export interface Probe {
  readonly limitMs: number
  measure(tools: ProbeTools): Promise<ProbeFinding>
}

const SHOWN = 300

/** The last line that a program printed, for a message. */
const lastLine = ({ errors, text }: ProbeOutput): string => {
  const lines = `${text}\n${errors}`
    .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
    .replace(/[\x00-\x09\x0b-\x1f\x7f]/g, ' ')
    .split('\n')
    .map(line => line.trim())
    .filter(line => /\w/.test(line))
  return (lines.at(-1) ?? 'nothing').slice(0, SHOWN)
}

/** The report that a program printed, which ends with 1 if it found something; undefined: it printed no report. */
export const reportOf = <T>({ code, text }: ProbeOutput, parse: (text: string) => T | null): T | undefined =>
  code <= 1 ? parsedBy(parse, text) : undefined

/** Says that a program printed what is not understood. */
export const notUnderstood = (program: string, output: ProbeOutput): never => {
  throw new ProbeFailed(`${program} ended with ${output.code} and printed what is not understood: ${lastLine(output)}`)
}

/** Parses JSON by a validator; undefined: it is another text. */
export const parsedBy = <T>(parse: (text: string) => T | null, text: string): T | undefined => {
  try {
    return parse(text) ?? undefined
  } catch {
    return undefined
  }
}

/** The part of a manifest that asks for a package, with its folder. */
export const manifestSection = ({ dir }: MeasuredProject, part: string): string =>
  dir === '' ? part : `${dir}: ${part}`
