import { Refusal, refuse } from '../../../sdk/index.js'
import type { NetworkReach } from '../../../sdk/node/network/addresses.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { CardDraft, SubagentOutcome, SubagentSpec, ToolResult } from '../providers/adapter.js'
import type { CardReply, Location, ToolCategory, ToolContent } from '../turn/frames.js'
import type { Rooted } from './tree.js'

/** What became of a command of the agent's shell. */
export interface ShellResult {
  readonly exit: number
  /** Both outputs as they came, cut in the middle when `truncated`. */
  readonly output: string
  readonly truncated: boolean
  readonly timedOut: boolean
}

/** How long a command may take, and who hears its output as it comes. */
export interface ShellOptions {
  readonly timeoutMs: number
  readonly onOutput?: (text: string) => void
}

/** Who watches the turn. */
export interface TurnWatcher {
  /** Whether a card could be answered. */
  readonly attends: boolean
  /** Parks the turn on a card; undefined: nobody answered. */
  ask(card: CardDraft): Promise<CardReply | undefined>
  /** What the plan says may now be done. */
  approved(): void
}

/** A helper that was waited for, as it stands. */
export interface JoinedSubagent extends SubagentOutcome {
  readonly id: string
  readonly description?: string
}

/** The helpers of whoever makes a call. */
export interface SubagentTools {
  /** Runs a helper for this call; one in the background has only begun when it answers. */
  delegate(spec: SubagentSpec): Promise<SubagentOutcome>
  /** Waits for helpers in the background: those named, or all that were not waited for yet. */
  join(ids?: readonly string[], timeoutMs?: number): Promise<JoinedSubagent[]>
}

/** Who else is there for a call: whoever watches, and the helpers. */
export interface CallContext {
  readonly person: TurnWatcher
  readonly subagents: SubagentTools
}

/** Where a tool works, and what it may use there. */
export interface ToolContext extends CallContext, Rooted {
  readonly signal: AbortSignal
  /** Runs a command behind the wall, in a folder inside `root`. */
  readonly shell: (command: string, cwd: string, options: ShellOptions) => Promise<ShellResult>
  /** Runs JavaScript behind the wall, in the folder the turn starts in. */
  readonly code: (source: string, options: ShellOptions) => Promise<ShellResult>
  /** Which addresses of the network the turn may ask. */
  readonly reach: () => Promise<NetworkReach>
  /** Hears a command's output as it comes. */
  readonly onOutput?: (text: string) => void
}

/** What a call's frames and its gate show of the input. */
export interface Description {
  readonly target?: string
  readonly locations?: Location[]
  readonly command?: string
  /** The program text of a call that is no command of the shell. */
  readonly code?: string
  readonly path?: string
  readonly url?: string
}

/** A tool of the sandbox. Every method but `check` is given what `check` returned. */
export interface Tool<Input extends object = object> {
  readonly category: ToolCategory
  /** The input as the tool takes it; a refusal names the field, what was expected and what was found. */
  check(input: unknown): Input
  describe(input: Input): Description
  /** What the tool refuses is a failed result with its sentence; a throw is a bug. */
  run(input: Input, context: ToolContext): Promise<ToolResult>
}

const SENTENCES: { readonly [code: string]: string } = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'this part of the tree is read-only',
  EACCES: 'the file system does not allow it',
  EPERM: 'the file system does not allow it',
  ENOENT: 'it is gone',
  ENOTDIR: 'a part of the path is no folder',
  ELOOP: 'a part of the path became a link meanwhile',
  EISDIR: 'it is a folder',
  EEXIST: 'something is there already',
  ENOTEMPTY: 'something is there already',
  EXDEV: 'the two places are on different file systems',
  EINVAL: 'a folder cannot go into itself',
  EMFILE: 'too many files are open',
  EBUSY: 'it is in use',
}

/** A tool whose refusals, and the refusals of the file system, are failed results. */
export const tool = <Input extends object>(plain: Tool<Input>): Tool<Input> => ({
  ...plain,
  run: async (input, context) => {
    try {
      return await plain.run(input, context)
    } catch (error) {
      if (error instanceof Refusal) return failed(error.message)
      const code = codeOf(error)
      if (code === undefined || !(error as { syscall?: string }).syscall) throw error
      const sentence = SENTENCES[code] ?? `the file system failed with ${code}`
      return failed(`${plain.describe(input).target ?? 'the call'}: ${sentence}`)
    }
  },
})

/** A failed result: the sentence a model and a person read. */
export const failed = (sentence: string): ToolResult => ({
  ok: false,
  text: sentence,
  content: [{ type: 'text', text: sentence }],
})

/** A good result. */
export const done = (text: string, content: ToolContent[] = [{ type: 'text', text }]): ToolResult => ({
  ok: true,
  text,
  content,
})

interface Limits {
  readonly least?: number
  readonly most?: number
}

/** Reads the fields of a tool's input one by one. */
export class Fields {
  readonly #tool: string
  readonly #input: { readonly [name: string]: unknown }

  constructor(tool: string, input: unknown) {
    this.#tool = tool
    const fits = typeof input === 'object' && input !== null && !Array.isArray(input)
    this.#input = fits ? (input as { [name: string]: unknown }) : this.wrong('input', 'an object', input)
  }

  /** Refuses a field. */
  wrong(path: string, expected: string, found: unknown): never {
    const value = shown(found)
    const message = `${this.#tool} takes ${path}: expected ${expected}, found ${value}`
    return refuse('invalid', message, { errors: [{ path, expected, value }] })
  }

  value(name: string): unknown {
    return Object.hasOwn(this.#input, name) ? this.#input[name] : undefined
  }

  text(name: string, { least = 0, most = 4 * 1024 * 1024 }: Limits = {}): string {
    const value = this.value(name)
    const fits = typeof value === 'string' && value.length >= least && value.length <= most && value.isWellFormed()
    return fits ? value : this.wrong(name, `text${least > 0 ? ', not empty' : ''}, at most ${most} characters`, value)
  }

  path(name: string): string {
    return this.text(name, { least: 1, most: 4096 })
  }

  whole(name: string, { least = 0, most = Number.MAX_SAFE_INTEGER }: Limits = {}): number | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    const fits = typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
    return fits ? value : this.wrong(name, `a whole number from ${least} to ${most}`, value)
  }

  flag(name: string): boolean {
    const value = this.value(name)
    return value === undefined || typeof value === 'boolean' ? value === true : this.wrong(name, 'true or false', value)
  }
}

const shown = (value: unknown): string => {
  if (value === undefined) return 'nothing'
  if (value === '') return 'empty text'
  if (typeof value === 'string') return value.length > 80 ? `${value.length} characters` : JSON.stringify(value)
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : value === null ? 'null' : 'an object'
  return String(value)
}
