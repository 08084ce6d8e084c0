import { explain, Refusal, refuse, valueInWords } from '../../../sdk/index.js'
import type { Env } from '../../../sdk/node/programs/run.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { CardDraft, SubagentOutcome, SubagentSpec, ToolResult } from '../providers/adapter.js'
import type { ApprovalDraft, ApprovalFiles } from '../../approvals/contract.js'
import type {
  CatalogCard,
  EarlierPayment,
  PaidRequest,
  PaymentHeader,
  PaymentOutcome,
  PaymentQuote,
} from '../../capabilities/contract.js'
import type { NeedQuestion } from '../../needs/contract.js'
import type { BrowserAct, BrowserCapture, BrowserReading, BrowserSession, BrowserUse } from '../../system/contract.js'
import type { TreeFound, TreeSearch } from '../../workspace/contract.js'
import type { KeepPicture } from '../outputs/pictures.js'
import type { ShortenOutput } from '../outputs/shorten.js'
import type { BackgroundProcess } from '../processes/background-process.js'
import type { References } from '../secrets/references.js'
import type { CardReply, Location, ToolCategory, ToolContent } from '../turn/frames/frames.js'
import { toolInputs, type ToolCalls } from './contract.js'
import type { KnownFiles } from './known-files.js'
import { schemaOf, type ToolSchema } from './schema.js'
import type { Rooted } from './tree.js'

/** The result of a command of the agent's shell. */
export interface ShellResult {
  readonly exit: number
  /** Standard output and standard error in order of arrival, cut in the middle if `truncated`. */
  readonly output: string
  readonly truncated: boolean
  readonly timedOut: boolean
}

/** The options of a command. */
export interface ShellOptions {
  readonly timeoutMs: number
  readonly onOutput?: (text: string) => void
  /** Variables in addition to those of every program of the turn. */
  readonly env?: Env
  /** The text that the log of commands shows instead of the command. */
  readonly shown?: string
}

/** The connection to the people who watch the turn. */
export interface TurnWatcher {
  /** Whether a card could be answered. */
  readonly attends: boolean
  /**
   * Parks the turn on a card; undefined: nobody answered. A call that is repeated after a restart takes the answer to
   * the same card; with `about` to one about the same, until what follows from the answer is done.
   */
  ask(card: CardDraft, about?: object): Promise<CardReply | undefined>
  /** Called when the plan was approved: plan mode ends. */
  approved(): void
}

/** A subagent and its current state, as `join` returns it. */
export interface JoinedSubagent extends SubagentOutcome {
  readonly id: string
  readonly description?: string
}

/** The subagents of the agent that makes a call. */
export interface SubagentTools {
  /** Runs a subagent for this call; resolves when it has ended, in the background when it has started. */
  delegate(spec: SubagentSpec): Promise<SubagentOutcome>
  /** Waits for subagents in the background: those named, or all whose result was not returned yet. */
  join(ids?: readonly string[], timeoutMs?: number): Promise<JoinedSubagent[]>
}

/** The text of a skill or of one of its files; `folder` is where programs of the turn find its files. */
export interface ReadSkillText {
  readonly text: string
  readonly files: readonly { readonly path: string; readonly size: number }[]
  readonly folder?: string
}

/** Asks people for what only they can give, on behalf of a turn. */
export interface NeedTools {
  /** Whether this sandbox keeps needs. */
  served(): Promise<boolean>
  /** Returns the id of the need. */
  raise(asked: NeedQuestion): Promise<string>
  withdraw(id: string): Promise<void>
}

/** Searches in the tree of a turn. */
export interface SearchTools {
  /** Whether this sandbox has a search. */
  served(): Promise<boolean>
  find(asked: TreeSearch): Promise<TreeFound>
}

/** The browser of a conversation. Actions on a page return it as it is then. */
export interface BrowserTools {
  /** Whether this sandbox has browsers. */
  served(): Promise<boolean>
  /** The browser that was used last and runs; undefined: none does. */
  session(): Promise<BrowserSession | undefined>
  /** The browser with the sign-ins of a connection; undefined: the one without any. */
  of(account: string | undefined): OneBrowser
  /** A one-time code of a connection. */
  code(id: string): Promise<string>
  /** The origins that an account names; undefined: the id is none of an account. */
  origins(id: string): Promise<readonly string[] | undefined>
}

/** One browser of a conversation. */
export interface OneBrowser {
  /** Opens a page; starts the browser when it does not run. */
  open(url: string): Promise<BrowserReading>
  /** Undefined: no page is open then. */
  act(act: Omit<BrowserAct, 'name'>): Promise<BrowserReading | undefined>
  use(use: Omit<BrowserUse, 'name'>): Promise<BrowserReading>
  /** What the page looks like; left out: the one that is shown. */
  capture(pageId?: string): Promise<BrowserCapture>
}

/** A terminal for people, with a shell where the commands of the turn run. */
export interface TerminalTools {
  /** Whether this sandbox has terminals. */
  served(): Promise<boolean>
  /** Opens it, or finds it open; returns its name. */
  open(): Promise<string>
  close(): Promise<void>
}

/** Files what a person has to allow, on behalf of a turn. */
export interface ApprovalTools {
  /** Whether this sandbox keeps approvals. */
  served(): Promise<boolean>
  /** Returns the id, and what is missing to carry it out. */
  file(draft: ApprovalDraft, files: ApprovalFiles): Promise<{ readonly id: string; readonly problem?: string }>
}

/** Has something connected by a person. */
export interface ConnectTools {
  /** Whether this sandbox has connections. */
  served(): Promise<boolean>
  /** What can be connected, with what is connected of it. */
  cards(): Promise<readonly CatalogCard[]>
  /** Waits for a new connection, as an offer says that was agreed to; its id, or undefined after 15 minutes. */
  finished(requestId: string, signal: AbortSignal): Promise<string | undefined>
}

/** Pays servers from connected wallets, each call at most once. */
export interface PayTools {
  /** Whether a wallet is connected that the turn may use. */
  served(): Promise<boolean>
  /** Whether even a small payment needs a person's yes, for others have a say in the turn. */
  readonly cautious: boolean
  /** What the call `call` signed before; with `request` an open payment for an equal request too. */
  earlier(call: string, request?: PaidRequest): Promise<EarlierPayment | undefined>
  quote(asked: {
    readonly request: PaidRequest
    readonly required?: string
    readonly body: string
    readonly wallet?: string
  }): Promise<PaymentQuote>
  /** Signs the payment of the call, kept when it returns; `card`: the offer that was agreed to. */
  sign(call: string, quote: PaymentQuote, card?: string): Promise<PaymentHeader>
  /** Keeps and shows what the server answered to the payment of the call, or to the earlier one with this key. */
  settle(
    call: string,
    key: string | undefined,
    said: { readonly settled?: string; readonly status: number; readonly answer: string },
  ): Promise<PaymentOutcome>
  /** Shows what came of a payment, once. */
  show(call: string, outcome: PaymentOutcome): Promise<void>
  /** Content of the server comes into the turn. */
  read(host: string): Promise<void>
}

/** A command in the background, as its conversation lists it. */
export interface ListedProcess {
  readonly id: string
  readonly command: string
  readonly startedAt: number
  /** `runs`, or how it ended. */
  readonly state: string
  /** Whether this turn may use it. */
  readonly usable: boolean
}

/** The commands in the background of a conversation. */
export interface ProcessTools {
  /** Whether commands can run in the background here. */
  served(): Promise<boolean>
  /** Starts a command in a folder inside `root`. */
  start(
    command: string,
    cwd: string,
    options: { readonly shown: string; readonly env?: Env; readonly timeoutMs?: number },
  ): Promise<BackgroundProcess>
  all(): readonly ListedProcess[]
  /** Refuses one that does not exist, that is gone, or that the turn may not use in this way. */
  one(id: string, way: 'use' | 'end'): BackgroundProcess
  /** The model knows which have ended. */
  told(): void
}

/** Reads a skill of a turn, or one of its files; refuses a skill that the turn does not have. */
export type ReadSkill = (name: string, file?: string) => Promise<ReadSkillText>

/** What other groups give to the tools of a turn. */
export interface ToolParts {
  readonly skill: ReadSkill
  readonly needs: NeedTools
  readonly approvals: ApprovalTools
  readonly connecting: ConnectTools
  readonly paying: PayTools
  readonly files: SearchTools
  readonly browser: BrowserTools
  readonly terminal: TerminalTools
  readonly processes: ProcessTools
}

/** The watchers and subagents that a call can use. */
export interface CallContext {
  /** The id of the call, unique in the run: a call that is repeated after a restart has the same. */
  readonly call: string
  readonly person: TurnWatcher
  readonly subagents: SubagentTools
  /** How many bytes of a result the model reads; left out: as many as of any. */
  readonly most?: number
  /** Called with a command's output as it comes. */
  readonly onOutput?: (text: string) => void
  /** Keeps a picture for a model that sees; left out: none is shown. */
  readonly picture?: KeepPicture
}

/** The tree that a tool works in, and everything else it may use. */
export interface ToolContext extends CallContext, ToolParts, Rooted {
  readonly signal: AbortSignal
  /** Runs a command behind the wall, in a folder inside `root`. */
  readonly shell: (command: string, cwd: string, options: ShellOptions) => Promise<ShellResult>
  /** Runs JavaScript behind the wall, in the folder the turn starts in. */
  readonly code: (source: string, options: ShellOptions) => Promise<ShellResult>
  /** The network addresses that the turn may connect to. */
  readonly reach: () => Promise<NetworkReach>
  /** Replaces references by stored values in commands and requests. */
  readonly references: References
  /** `Read` names each line by its number and a hash, which `Edit` takes. */
  readonly lineHashes?: boolean
  /** What its model knows of files; left out: nobody keeps that. */
  readonly known?: KnownFiles
  /** Shortens a command's output before the model reads it; left out: it reads all of it. */
  readonly shorten?: ShortenOutput
}

/** The parts of the input that the frames and the gate use. */
export interface Description {
  readonly target?: string
  readonly locations?: Location[]
  readonly command?: string
  /** The text of a program, for calls that run one outside a shell. */
  readonly code?: string
  readonly path?: string
  readonly url?: string
  /** In place of that of the tool. */
  readonly category?: ToolCategory
}

/** Names of the tools. */
export type ToolName = keyof ToolCalls & string

/** The input of a tool, as the model sends it. */
export type ToolInput<Name extends ToolName> = Parameters<ToolCalls[Name]>[0]

/** Refuses a field of an input: its path, what was expected and what was found. */
export type Misfit = (path: string, expected: string, found: unknown) => never

/** A tool of the sandbox. `describe` and `run` get the result of `check`. */
export interface Tool<Input extends object = object> {
  readonly category: ToolCategory
  /** The description of the tool for a model. It costs time to build, so it is built on request. */
  schema(): ToolSchema
  /** The input without undeclared fields; a refusal names the field, what was expected and what was found. */
  check(input: unknown): Input
  describe(input: Input): Description
  /** Refusals become failed results with their message; anything thrown is a bug. */
  run(input: Input, context: ToolContext): Promise<ToolResult>
}

/** The definition of a tool; its name and its input are declared in `contract.ts`. */
export interface ToolDefinition<Input extends object> extends Pick<Tool<Input>, 'category' | 'describe' | 'run'> {
  /** Refuses what the type of the input cannot exclude. */
  readonly refine?: (input: Input, misfit: Misfit) => void
}

const SENTENCES: { readonly [code: string]: string } = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'this part of the tree is read-only',
  EACCES: 'the file system does not allow it',
  EPERM: 'the file system does not allow it',
  ENOENT: 'it no longer exists',
  ENOTDIR: 'a part of the path is not a folder',
  ELOOP: 'a part of the path was replaced by a link',
  EISDIR: 'it is a folder',
  EEXIST: 'something is there already',
  ENOTEMPTY: 'something is there already',
  EXDEV: 'the two paths are on different file systems',
  EINVAL: 'a folder cannot be moved into itself',
  EMFILE: 'too many files are open',
  EBUSY: 'it is in use',
}

/** Makes a tool that validates its input and turns refusals and file system errors into failed results. */
export const tool = <Name extends ToolName>(
  name: Name,
  { category, describe, run, refine }: ToolDefinition<ToolInput<Name>>,
): Tool<ToolInput<Name>> => ({
  category,
  describe,
  schema: () => schemaOf(name),
  check: input => {
    const misfit: Misfit = (path, expected, found) => {
      const value = valueInWords(found)
      return refuse('invalid', `${name} takes ${path}: expected ${expected}, found ${value}`, {
        errors: [{ path, expected, value }],
      })
    }
    if (typeof input !== 'object' || input === null || Array.isArray(input)) return misfit('input', 'an object', input)
    const result = toolInputs.request({ call: name, input })
    if (!result.success) {
      const [error] = explain(result.errors, '$input.input')
      return misfit(error!.path.replace(/\[(\d+)\]/g, '.$1'), error!.expected, result.errors[0]!.value)
    }
    // The validator has checked the input against the type of this name.
    const checked = result.data.input as ToolInput<Name>
    refine?.(checked, misfit)
    return checked
  },
  run: async (input, context) => {
    try {
      return await run(input, context)
    } catch (error) {
      if (error instanceof Refusal) return failed(error.message)
      const code = codeOf(error)
      if (code === undefined || !(error as { syscall?: string }).syscall) throw error
      const sentence = SENTENCES[code] ?? `the file system failed with ${code}`
      return failed(`${describe(input).target ?? 'the call'}: ${sentence}`)
    }
  },
})

/** A failed result, with the message that the model and the person read. */
export const failed = (sentence: string): ToolResult => ({
  ok: false,
  text: sentence,
  content: [{ type: 'text', text: sentence }],
})

/** A successful result. */
export const done = (text: string, content: ToolContent[] = [{ type: 'text', text }]): ToolResult => ({
  ok: true,
  text,
  content,
})
