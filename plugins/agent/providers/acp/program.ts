import { refuse } from '../../../../sdk/index.js'
import { programNamed } from '../../../../sdk/node/programs/installed-at.js'
import type { Env } from '../../../../sdk/node/programs/run.js'

/** An agent program outside the sandbox that speaks the Agent Client Protocol, as its provider describes it. */
export interface AgentProgram {
  /** The name shown to people. */
  readonly label: string
  /** The command: a name in the PATH, or a path; not split at blanks. */
  readonly command: readonly [program: string, ...args: string[]]
  /** Instructions for installing it. */
  readonly install: string
  readonly env?: Env
  /** Folders to search besides the PATH. */
  readonly folders?: readonly string[]
  /** Folders that it needs besides those of the system. */
  readonly needs?: readonly string[]
  /** It is the sandbox's own and asks before every action, so plan mode needs no wall. */
  readonly asks?: true
  /** Its variables are good for one turn: it ends with that, and serves no other conversation. */
  readonly once?: true
  /** The name of the connected program, which has its own home folder. */
  readonly home?: string
}

/** The path of a program; undefined if it is not installed. */
export const located = ({ command: [name], folders }: AgentProgram): Promise<string | undefined> =>
  programNamed(name, folders)

/** The message for a missing program, with how to install it. */
export const absence = ({ label, command: [name], install }: AgentProgram): string =>
  `expected the program ${name} of ${label} and found none: ${install}`

/** Refuses a program that is not installed. */
export const installed = async (program: AgentProgram): Promise<void> => {
  if ((await located(program)) === undefined) refuse('missing-program', absence(program))
}
