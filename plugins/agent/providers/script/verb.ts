import type { Frame } from '../../turn/frames/frames.js'
import type { ScriptContext } from './context.js'

/** What stands behind a verb on its line, and the `|` lines below it. */
export interface Argument {
  readonly text: string
  readonly lines: readonly string[]
}

/** What a command does: the frames that the script itself writes, or nothing but work. */
export type Steps = AsyncIterable<Frame> | Promise<void> | void

/** A verb of the language. Texts of its input still hold their variables. */
export interface ScriptVerb<Input extends object = object> {
  /** How its line looks, as `/help` shows it. */
  readonly form: string
  /** What it does, as `/help` shows it. */
  readonly help: string
  /** Lines below it that begin with `|` make no sense. */
  readonly lineless?: true
  /** Repeated, it is saved only now and then: the log tells the rest. */
  readonly quiet?: true
  /** Speaks as a model's server would, so a program outside the daemon does not have it. */
  readonly native?: true
  /** What the line says; throws `Malformed`. */
  read(argument: Argument): Input
  run(input: Input, script: ScriptContext): Steps
}

/** One command of a script: where it stands, what it does, and how often when it says so. */
export interface ScriptCommand {
  readonly line: number
  readonly name: string
  readonly verb: ScriptVerb
  readonly input: object
  readonly times?: number
}

/** A verb, its input typed by what it reads. */
export const verb = <Input extends object>(plain: ScriptVerb<Input>): ScriptVerb<Input> => plain
