import typia, { type tags } from 'typia'
import type { Contract, Requests } from '../../../sdk/contract.js'
import type { ApprovalDraft } from '../../approvals/contract.js'
import type { NeedQuestion } from '../../needs/contract.js'

/** Text that can be written as UTF-8: without lone surrogates. */
type WellFormed = tags.TagBase<{
  target: 'string'
  kind: 'wellFormed'
  value: undefined
  validate: '$input.isWellFormed()'
  exclusive: true
}>
type ToolText<Most extends number> = string & tags.MaxLength<Most> & WellFormed
type ToolWords<Most extends number> = ToolText<Most> & tags.MinLength<1>
/** The content of a file. */
type FileText = ToolText<4194304>
/** A path from the root of the workspace. */
type ToolPath = ToolWords<4096>
type LineCount = number & tags.Type<'uint64'> & tags.Minimum<1>
type Timeout = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<3600000>

/** The file to read. */
export interface ReadInput {
  /** The file. */
  path: ToolPath
  /** The first line to read, from 1. */
  offset?: LineCount
  /** How many lines; left out: all. */
  limit?: LineCount
}
/** The folder to list. */
export interface ListInput {
  /** The folder; left out: the root. */
  path?: ToolPath
  /** How many levels; left out: 1. */
  depth?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<8>
}
/** What to search for. */
export interface SearchFilesInput {
  /** What to find, as `mode` says. */
  query: ToolWords<512>
  /**
   * `find` (left out): lines with a regular expression; `files`: names, in which `*`, `?` and `**` make a pattern;
   * `ast`: code of a shape in JavaScript, TypeScript, HTML and CSS, in which `$NAME` is one part and `$$$` any number.
   */
  mode?: 'find' | 'files' | 'ast'
  /** The folder to search; left out: all. */
  dir?: ToolWords<400>
  /** Paths, such as `*.ts, src/**, !docs`. */
  include?: ToolText<512>
  /** The query is plain text. */
  literal?: boolean
  /** Capitals matter. */
  caseSensitive?: boolean
}
/** A file, and the text to write or append. */
export interface ContentInput {
  /** The file. */
  path: ToolPath
  /** The text. */
  content: FileText
}
/** A line as `Read` names it: its number and the hash of its text, such as `12:9f3c`. */
type LineName = string & tags.MaxLength<20> & tags.Pattern<'^[1-9][0-9]{0,9}:[0-9a-f]{4}$'>
/** A replacement in a file. */
export interface EditInput {
  /** The file. */
  path: ToolPath
  /** The text to replace, exactly as in the file; without `all` it must stand there once. */
  old?: FileText & tags.MinLength<1>
  /** In place of `old`: the first line to replace, as `Read` names it, such as `12:9f3c`. */
  from?: LineName
  /** With `from`: the last line to replace; left out: only that one. */
  to?: LineName
  /** In place of `old`: the line after which the text is inserted; `0`: before the first line. */
  after?: LineName | '0'
  /** The replacement; empty deletes. */
  new?: FileText
  /** Replaces every occurrence. */
  all?: boolean
  /** In place of `old` and `new`: several, made in order; if one does not fit, none is made. */
  edits?: EditPart[] & tags.MinItems<1> & tags.MaxItems<100>
  /** Hunks of a patch of this file: `@@ LINE ABOVE`, then lines after ` `, `-` or `+`. */
  patch?: FileText & tags.MinLength<1>
}
/** One of several replacements. */
export interface EditPart {
  /** The text to replace. */
  old: FileText & tags.MinLength<1>
  /** The replacement. */
  new: FileText
  /** Replaces every occurrence. */
  all?: boolean
}
/** The file, link or empty folder to delete. */
export interface DeleteInput {
  /** Its path. */
  path: ToolPath
}
/** A file, link or folder, and its new path. */
export interface MoveInput {
  /** Its path. */
  from: ToolPath
  /** Its new path, where nothing is yet. */
  to: ToolPath
}
/** A command of the shell. */
export interface ShellInput {
  /** The command, for `/bin/sh`. */
  command: ToolWords<100000>
  /** The folder to run it in; left out: the root. */
  cwd?: ToolPath
  /** Milliseconds it may take; left out: 600000, in the background any. */
  timeoutMs?: Timeout
  /** Returns at once, for servers and watchers: it runs on after your turn, and `Process` shows its output. */
  background?: boolean
}
/** What to do with commands in the background. */
export interface ProcessInput {
  /** `output`: what one wrote; `input` writes to one; `kill` ends one with all it started. */
  action: 'list' | 'output' | 'input' | 'kill'
  /** The command, such as `sh-1`. */
  id?: string & tags.Pattern<'^sh-[1-9][0-9]{0,8}$'>
  /** `output`: from this position on; left out: where you last stopped. */
  since?: number & tags.Type<'uint64'>
  /** `output`: milliseconds to wait for something new or its end. */
  waitMs?: Timeout
  /** `input`: the text, with its line end; empty ends the input. */
  text?: ToolText<65536>
}
/** A JavaScript program. */
export interface CodeInput {
  /** A CommonJS or ES module for Node.js. */
  source: ToolWords<1048576>
  /** Milliseconds it may take; left out: 600000. */
  timeoutMs?: Timeout
}
/** A request to a web server. */
export interface FetchInput {
  /** The address, with `http` or `https`. */
  url: ToolWords<8192>
  /** Left out: `GET`. */
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** None such as `Host` or `Content-Length`. */
  headers?: { [name: string]: string & tags.MaxLength<16384> }
  /** Not with `GET` or `HEAD`. */
  body?: ToolText<1048576>
}
/** One item of the todo list. */
export interface TodoInputItem {
  /** The task. */
  content: ToolWords<2000>
  status: 'pending' | 'in_progress' | 'completed'
  /** As shown while in progress: "Running tests". */
  activeForm?: ToolText<2000>
}
/** The whole todo list. */
export interface TodoInput {
  /** Every item, in order. */
  items: TodoInputItem[] & tags.MaxItems<200>
}
/** One answer that a person can choose. */
export interface AskOption {
  /** In a few words. */
  label: ToolWords<200>
  /** What choosing it means. */
  description?: ToolText<2000>
  /** What it would look like, as Markdown. */
  preview?: ToolText<20000>
}
/** One question for the person. */
export interface AskQuestion {
  /** A sentence; no two are the same. */
  question: ToolWords<4000>
  /** Its topic in a word or two. */
  header?: ToolText<80>
  /** Several may be chosen. */
  multiSelect?: boolean
  /** Unique answers to choose from; a person can always give another. */
  options: AskOption[] & tags.MaxItems<20>
}
/** Questions for the person. */
export interface AskInput {
  /** The questions, shown together. */
  questions: AskQuestion[] & tags.MinItems<1> & tags.MaxItems<10>
}
/** A plan for the person to approve. */
export interface PlanInput {
  /** The plan, as Markdown. */
  text: ToolWords<100000>
}
/** A part of the work for a subagent. */
export interface DelegateInput {
  /** Its task in a few words, for people. */
  description: ToolWords<2000>
  /** All that it sees of the conversation. */
  prompt: ToolWords<1048576>
  /** Returns at once; `Join` waits for it. */
  background?: boolean
  /** Its kind. */
  agentType?: ToolWords<120>
  /** Its model; left out: yours. */
  model?: ToolWords<120>
}
/** The subagents to wait for. */
export interface JoinInput {
  /** Left out: all not returned yet. */
  ids?: (string & tags.MaxLength<400>)[] & tags.MinItems<1> & tags.MaxItems<200>
  /** Milliseconds to wait; left out: until the end. */
  timeoutMs?: Timeout
}

/** The skill to read. */
export interface SkillInput {
  /** Its name. */
  name: ToolWords<60>
  /** A file in its folder; left out: its text. */
  file?: ToolWords<1024>
}

/** What to do in the browser of the conversation. */
export interface BrowserInput {
  /**
   * `open` shows an address in a new page, `goto` in the present one. `read` returns the page as text, its usable
   * elements with a `ref`. `click`, `hover`, `fill`, `select`, `upload` take a `ref`, `press` a key, `wait` a text.
   * `activate` shows another page. Each returns the page as text; `picture` what it looks like.
   */
  action:
    | 'open'
    | 'goto'
    | 'read'
    | 'click'
    | 'hover'
    | 'fill'
    | 'press'
    | 'select'
    | 'upload'
    | 'wait'
    | 'back'
    | 'forward'
    | 'reload'
    | 'activate'
    | 'picture'
    | 'close'
  /** A connection that is signed in: acts in its own browser. */
  account?: ToolWords<60>
  /** `open`, `goto`: with `http` or `https`. */
  url?: ToolWords<4000>
  /** Such as `p2`. */
  page?: ToolWords<40>
  /** An element of the last reading, such as `e12`. */
  ref?: string & tags.Pattern<'^(?:f[0-9]{1,6})?e[0-9]{1,9}$'>
  /** `fill`: replaces what is there; `wait`: the text. */
  text?: ToolText<100000>
  /** `press`: such as `Enter` or `Control+A`. */
  key?: ToolWords<64>
  /** `select`: labels or values. */
  values?: ToolText<2000>[] & tags.MaxItems<100>
  /** `upload`: files, at most 20 MiB together. */
  paths?: ToolPath[] & tags.MinItems<1> & tags.MaxItems<10>
}

/** What to hand to the person who watches. */
export interface HandoverInput {
  /** The page that is shown, or a shell where your commands run. */
  surface: 'browser' | 'terminal'
  /** What the person is to do. */
  message: ToolWords<2000>
}

/** What to have connected. */
export interface ConnectInput {
  /** A card of the catalogue, such as `github` or `mcp`. */
  card: ToolWords<80>
  /** What for; the person reads it. */
  why: ToolWords<2000>
}

/** A request to a server that may ask for a payment. */
export interface PayInput extends FetchInput {
  /** The connection that pays; left out: the one that fits. */
  wallet?: ToolWords<60>
  /** What for; the person reads it. */
  why: ToolWords<2000>
}

/** The need to take back. */
export interface WithdrawInput {
  /** The id that Need returned. */
  id: ToolWords<64>
}

/** The tools of the sandbox, as a model calls them: each returns a text. */
export interface ToolCalls {
  /** Read a file, or some lines. You see pictures; other binary files are described. */
  Read(input: ReadInput): string
  /** List a folder: folders end with `/`, links with `@`. Links, `.git` and `node_modules` are not opened. */
  List(input: ListInput): string
  /** Search the files, without ignored and binary ones. */
  Search(input: SearchFilesInput): string
  /** Write a whole file, with missing folders. Read a file that exists before you write over it. */
  Write(input: ContentInput): string
  /** Append a text to a file, or create the file. */
  Append(input: ContentInput): string
  /** Replace texts or whole lines of a file. */
  Edit(input: EditInput): string
  /** Delete a file, a link or an empty folder. */
  Delete(input: DeleteInput): string
  /** Rename a file, link or folder. */
  Move(input: MoveInput): string
  /** Run a command in a shell and return its output, and its exit code if that is not 0. */
  Shell(input: ShellInput): string
  /** List commands in the background, read or write to one, or end it. They end with the conversation. */
  Process(input: ProcessInput): string
  /** Run JavaScript and return its output. */
  Code(input: CodeInput): string
  /** Send a request to a web server; returns the response as text. */
  Fetch(input: FetchInput): string
  /** Use a web browser, which the person can watch. It keeps its pages until the turn ends. */
  Browser(input: BrowserInput): string
  /**
   * Hand the browser or a terminal to the person for what you cannot or must not do: a sign-in, a captcha, a password.
   * Returns once they say that it is done, or that they could not.
   */
  Handover(input: HandoverInput): string
  /**
   * Offer the person to connect a service, a server or a model that the work needs. Returns once it is connected; you
   * can use it from your next turn.
   */
  Connect(input: ConnectInput): string
  /**
   * Send a request to a server that answers 402, pay from a connected wallet and return the paid response. The person
   * is asked above the wallet's limit. An equal call after an unsettled payment sends the same one: nothing is paid
   * twice.
   */
  Pay(input: PayInput): string
  /** Replace the todo list, which the person sees. */
  Todo(input: TodoInput): string
  /** Ask the person questions; returns a line per question. */
  Ask(input: AskInput): string
  /** Ask the person to approve a plan; then a turn in plan mode may carry it out. */
  Plan(input: PlanInput): string
  /** Give a part of the work to a subagent and return its final text. */
  Delegate(input: DelegateInput): string
  /** Wait for subagents in the background and return the result of each. */
  Join(input: JoinInput): string
  /** Read the instructions of a skill, or one of its files. */
  Skill(input: SkillInput): string
  /**
   * Ask for what only a person can give, who need not be watching. Then end your turn: the conversation goes on once it
   * is settled.
   */
  Need(input: NeedQuestion): string
  /** Take back what you asked for with Need. */
  Withdraw(input: WithdrawInput): string
  /**
   * Propose a post or an action that you may not carry out yourself: on a person's yes the sandbox does exactly that.
   */
  Propose(input: ApprovalDraft): string
}

/** The validators and schemas of tool inputs. A valid input is copied without undeclared fields. */
export const toolInputs: Pick<Contract<ToolCalls>, 'schema' | 'request'> = {
  schema: () => typia.json.application<ToolCalls>(),
  request: typia.misc.createValidateClone<Requests<ToolCalls>>(),
}
