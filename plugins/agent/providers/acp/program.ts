import { refuse } from '../../../../sdk/index.js'
import { programNamed } from '../../../../sdk/node/programs/installed-at.js'
import type { Env } from '../../../../sdk/node/programs/run.js'

/** An agent program outside the sandbox that speaks the Agent Client Protocol, as its provider describes it. */
export interface AgentProgram {
  /** As a person knows it. */
  readonly label: string
  /** What is started: a name looked up in the PATH, or a path; blanks split nothing. */
  readonly command: readonly [program: string, ...args: string[]]
  /** How a person installs it. */
  readonly install: string
  readonly env?: Env
  /** Where it may lie beside the PATH. */
  readonly folders?: readonly string[]
  /** Folders it needs beside those of the system. */
  readonly needs?: readonly string[]
  /** It is the sandbox's own, and does nothing without asking: no wall need hold it to a plan. */
  readonly asks?: true
  /** The connected program it is, which has a home folder of its own. */
  readonly home?: string
}

/** The path at which a program is found, or undefined where it is not installed. */
export const located = ({ command: [name], folders }: AgentProgram): Promise<string | undefined> =>
  programNamed(name, folders)

/** The sentence that names a program that is missing, and how to install it. */
export const absence = ({ label, command: [name], install }: AgentProgram): string =>
  `expected the program ${name} of ${label} and found none: ${install}`

/** Refuses a program that is not installed. */
export const installed = async (program: AgentProgram): Promise<void> => {
  if ((await located(program)) === undefined) refuse('missing-program', absence(program))
}
