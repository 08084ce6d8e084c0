import typia, { type tags } from 'typia'
import type { Contract, Requests } from '../../../sdk/contract.js'
import type { ApprovalDraft } from '../../approvals/contract.js'
import type { NeedQuestion } from '../../needs/contract.js'
import type { BackgroundId } from '../processes/contract.js'

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
  /** The path of the file from the root of the workspace. */
  path: ToolPath
  /** The first line to read, from 1; left out: the first one. */
  offset?: LineCount
  /** How many lines to read; left out: all. */
  limit?: LineCount
}
/** The folder to list. */
export interface ListInput {
  /** The path of the folder from the root of the workspace; left out: the root. */
  path?: ToolPath
  /** How many levels to list; left out: 1. */
  depth?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<8>
}
/** What to search for. */
export interface SearchFilesInput {
  /** A text or regular expression, a name, or code, as `mode` says. */
  query: ToolWords<512>
  /**
   * `find` (left out) searches lines for a text or regular expression; `files` searches names, in which `*`, `?` and
   * `**` make a pattern; `ast` searches JavaScript, TypeScript, HTML and CSS for code of this shape, in which `$NAME`
   * stands for one part and `$$$` for any number.
   */
  mode?: 'find' | 'files' | 'ast'
  /** The folder to search, from the root of the workspace; left out: all. */
  dir?: ToolWords<400>
  /** Patterns of paths, separated by commas, such as `*.ts, src/**, !docs`. */
  include?: ToolText<512>
  /** The query is no regular expression. */
  literal?: boolean
  /** Capitals matter. */
  caseSensitive?: boolean
}
/** A file, and the text to write or append. */
export interface ContentInput {
  /** The path of the file from the root of the workspace. */
  path: ToolPath
  /** The text. */
  content: FileText
}
/** A line as `Read` names it: its number and the hash of its text, such as `12:9f3c`. */
type LineName = string & tags.MaxLength<20> & tags.Pattern<'^[1-9][0-9]{0,9}:[0-9a-f]{4}$'>
/** A replacement in a file. */
export interface EditInput {
  /** The path of the file from the root of the workspace. */
  path: ToolPath
  /**
   * The text to replace, as the file holds it; its line ends need not be those of the file. Without `all` the file must
   * hold it exactly once.
   */
  old?: FileText & tags.MinLength<1>
  /** In place of `old`: the first line to replace, as `Read` names it, such as `12:9f3c`. */
  from?: LineName
  /** With `from`: the last line to replace; left out: only that one. */
  to?: LineName
  /** In place of `old`: the line after which the text is inserted; `0`: before the first line. */
  after?: LineName | '0'
  /** The replacement; empty deletes what it replaces. Left out only with `edits`. */
  new?: FileText
  /** Replaces every occurrence. */
  all?: boolean
  /** In place of `old` and `new`: several replacements, made in order; if one does not fit, none is made. */
  edits?: EditPart[] & tags.MinItems<1> & tags.MaxItems<100>
}
/** One of several replacements. */
export interface EditPart {
  /** The text to replace, which the file must hold exactly once without `all`. */
  old: FileText & tags.MinLength<1>
  /** The replacement; empty deletes what it replaces. */
  new: FileText
  /** Replaces every occurrence. */
  all?: boolean
}
/** The file, link or empty folder to delete. */
export interface DeleteInput {
  /** Its path from the root of the workspace. */
  path: ToolPath
}
/** A file, link or folder, and its new path. */
export interface MoveInput {
  /** Its path from the root of the workspace. */
  from: ToolPath
  /** Its new path, which must not exist yet. */
  to: ToolPath
}
/** A command of the shell. */
export interface ShellInput {
  /** The command, for `/bin/sh`. */
  command: ToolWords<100000>
  /** The folder to run it in, from the root of the workspace; left out: the root. */
  cwd?: ToolPath
  /** How many milliseconds it may take; left out: 600000. */
  timeoutMs?: Timeout
  /**
   * Starts it and returns at once: for servers, watchers and long builds. It runs on after your turn, without a time
   * limit unless `timeoutMs` is given; `Process` shows its output.
   */
  background?: boolean
}
/** What to do with commands in the background. */
export interface ProcessInput {
  /** `list` names them, `output` is what one wrote, `input` writes to one, `kill` ends one with all it started. */
  action: 'list' | 'output' | 'input' | 'kill'
  /** The command, such as `sh-1`. */
  id?: BackgroundId
  /** `output`: the position to begin at, as an earlier output names it; left out: where you last stopped. */
  since?: number & tags.Type<'uint64'>
  /** `output`: how many milliseconds to wait for something new or for its end; left out: not at all. */
  waitMs?: Timeout
  /** `input`: the text, with the line end that a line needs; empty ends the input. */
  text?: ToolText<65536>
}
/** A JavaScript program. */
export interface CodeInput {
  /** The text of the program, as a CommonJS or ES module for Node.js. */
  source: ToolWords<1048576>
  /** How many milliseconds it may take; left out: 600000. */
  timeoutMs?: Timeout
}
/** A request to a web server. */
export interface FetchInput {
  /** The address, with `http` or `https`. */
  url: ToolWords<8192>
  /** Left out: `GET`. */
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** Up to 50 headers, none that control the connection, such as `Host` or `Content-Length`. */
  headers?: { [name: string]: string & tags.MaxLength<16384> }
  /** The body; none with `GET` or `HEAD`. */
  body?: ToolText<1048576>
}
/** One item of the todo list. */
export interface TodoInputItem {
  /** The task. */
  content: ToolWords<2000>
  status: 'pending' | 'in_progress' | 'completed'
  /** The task as shown while it is in progress: "Running tests". */
  activeForm?: ToolText<2000>
}
/** The whole todo list. */
export interface TodoInput {
  /** Every item, in order. The list replaces the previous one. */
  items: TodoInputItem[] & tags.MaxItems<200>
}
/** One answer that a person can choose. */
export interface AskOption {
  /** The answer in a few words. */
  label: ToolWords<200>
  /** What choosing it means. */
  description?: ToolText<2000>
  /** What it would look like, such as code or a layout, as Markdown. */
  preview?: ToolText<20000>
}
/** One question for the person. */
export interface AskQuestion {
  /** The question as a sentence. No two questions of a call are the same. */
  question: ToolWords<4000>
  /** Its topic in one or two words; left out: "Question". */
  header?: ToolText<80>
  /** Whether several answers may be chosen. */
  multiSelect?: boolean
  /** The answers to choose from, with unique labels; a person can always give another answer. */
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
  /** The task of the subagent in a few words, shown to people. */
  description: ToolWords<2000>
  /** The prompt of the subagent. It sees nothing else of the conversation. */
  prompt: ToolWords<1048576>
  /** Starts the subagent and returns at once; Join waits for it. */
  background?: boolean
  /** The kind of subagent. */
  agentType?: ToolWords<120>
  /** The model of the subagent; left out: the model of the caller. */
  model?: ToolWords<120>
}
/** The subagents to wait for. */
export interface JoinInput {
  /** The ids of subagents in the background; left out: all whose result was not returned yet. */
  ids?: (string & tags.MaxLength<400>)[] & tags.MinItems<1> & tags.MaxItems<200>
  /** How many milliseconds to wait; left out: until the end. */
  timeoutMs?: Timeout
}

/** The skill to read. */
export interface SkillInput {
  /** The name of the skill. */
  name: ToolWords<60>
  /** The path of a file beside its text, from the folder of the skill; left out: the text itself. */
  file?: ToolWords<1024>
}

/** What to do in the browser of the conversation. */
export interface BrowserInput {
  /**
   * `open` shows an address in a new page, `goto` in the page that is shown. `read` returns the page as text: its
   * elements by role and name, those that can be used with a `ref`. `click`, `hover`, `fill`, `select`, `upload` take
   * a `ref`, `press` a key, `wait` a text that is to appear. `activate` shows another page, `close` closes one. Each
   * returns the page as it is then, as text; `picture` is what it looks like.
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
  /** A connection whose account is signed in: all is done in its browser then, which has pages of its own. */
  account?: ToolWords<60>
  /** `open`, `goto`: the address, with `http` or `https`. */
  url?: ToolWords<4000>
  /** The page, such as `p2`; left out: the one that is shown. */
  page?: ToolWords<40>
  /** The element, as the last reading of the page names it, such as `e12`. */
  ref?: string & tags.Pattern<'^(?:f[0-9]{1,6})?e[0-9]{1,9}$'>
  /** `fill`: what to write, in place of what is there. `wait`: the text. */
  text?: ToolText<100000>
  /** `press`: a key by its name, such as `Enter`, `a` or `Control+A`. */
  key?: ToolWords<64>
  /** `select`: the labels or values to select. */
  values?: ToolText<2000>[] & tags.MaxItems<100>
  /** `upload`: the paths of the files from the root of the workspace, at most 20 MiB together. */
  paths?: ToolPath[] & tags.MinItems<1> & tags.MaxItems<10>
}

/** What to hand to the person who watches. */
export interface HandoverInput {
  /** `browser`: the page that is shown. `terminal`: a shell where your commands run. */
  surface: 'browser' | 'terminal'
  /** What the person is to do there. */
  message: ToolWords<2000>
}

/** What to have connected. */
export interface ConnectInput {
  /** The id of a card of the catalogue, such as `github`, `mcp` or `ssh`. */
  card: ToolWords<80>
  /** What the work needs it for; the person reads it. */
  why: ToolWords<2000>
}

/** A request to a server that may ask for a payment. */
export interface PayInput extends FetchInput {
  /** The wallet that pays, by the name of its connection; left out: the one that fits. */
  wallet?: ToolWords<60>
  /** What the work needs it for; the person reads it. */
  why: ToolWords<2000>
}

/** The need to take back. */
export interface WithdrawInput {
  /** The id that Need returned. */
  id: ToolWords<64>
}

/** The tools of the sandbox, as a model calls them: each returns a text. */
export interface ToolCalls {
  /** Read a file, or some lines of it. You see a PNG, JPEG, GIF or WebP picture; other binary files are described. */
  Read(input: ReadInput): string
  /** List a folder. Folders end with `/`, links with `@`. Neither links, `.git` nor `node_modules` are opened. */
  List(input: ListInput): string
  /** Search the files for a text, a name or code of a shape. Ignored and binary files are left out. */
  Search(input: SearchFilesInput): string
  /** Write a whole file and create missing folders. Read a file that exists before you write over it. */
  Write(input: ContentInput): string
  /** Append a text to a file, or create the file. */
  Append(input: ContentInput): string
  /** Replace a text in a file, several texts, or whole lines of it. */
  Edit(input: EditInput): string
  /** Delete a file, a link or an empty folder. */
  Delete(input: DeleteInput): string
  /** Rename a file, link or folder. */
  Move(input: MoveInput): string
  /** Run a command in a shell and return its output, and its exit code if that is not 0. */
  Shell(input: ShellInput): string
  /** Look at the commands that run in the background, write to one, or end it. They end with the conversation. */
  Process(input: ProcessInput): string
  /** Run JavaScript in its own process and return its output. */
  Code(input: CodeInput): string
  /** Send a request to a web server and return the text of the response. */
  Fetch(input: FetchInput): string
  /** Use a web browser, which the person can watch. It keeps its pages until the turn ends. */
  Browser(input: BrowserInput): string
  /**
   * Hand the browser or a terminal to the person who watches, for what you cannot or must not do: a sign-in, a captcha,
   * a password. Returns once they say that it is done, or that they could not do it.
   */
  Handover(input: HandoverInput): string
  /**
   * Offer the person who watches to connect something that the work needs: a service, a server, a model. They fill in
   * its form themselves. Returns once it is connected; you can use it from your next turn.
   */
  Connect(input: ConnectInput): string
  /**
   * Send a request to a web server that answers with status 402, and pay what it asks for from a connected wallet. The
   * person is asked first, unless the amount is below the wallet's limit. Returns the text of the paid response. When a
   * payment is not settled, an equal call sends the same payment again: nothing is paid twice.
   */
  Pay(input: PayInput): string
  /** Replace the todo list, which the person sees. */
  Todo(input: TodoInput): string
  /** Ask the person questions and return the answers, one line per question. */
  Ask(input: AskInput): string
  /** Ask the person to approve a plan. After that, a turn in plan mode may carry it out. */
  Plan(input: PlanInput): string
  /** Give a part of the work to a subagent and return its final text. */
  Delegate(input: DelegateInput): string
  /** Wait for subagents in the background and return the result of each. */
  Join(input: JoinInput): string
  /** Read the instructions of a skill, or one of its files. */
  Skill(input: SkillInput): string
  /**
   * Ask for something that only a person can give: a secret, a connection, a decision, a file, something done outside
   * this machine. Nobody need be watching. Then end your turn: the conversation goes on once it is settled.
   */
  Need(input: NeedQuestion): string
  /** Say that you no longer need what you asked for with Need. */
  Withdraw(input: WithdrawInput): string
  /**
   * Propose a post or an action that you may not carry out yourself. A person sees it word for word and says yes or no;
   * on a yes the sandbox carries out exactly that. The platform `webhook` sends one HTTP POST to `target`; `outbox`
   * publishes `content` (an HTML document or plain text) as a page, with `media` beside it, under the name `target`.
   * The action `outbox.publish` publishes the file or folder `path` of its arguments.
   */
  Propose(input: ApprovalDraft): string
}

/** The validators and schemas of tool inputs. A valid input is copied without undeclared fields. */
export const toolInputs: Pick<Contract<ToolCalls>, 'schema' | 'request'> = {
  schema: () => typia.json.application<ToolCalls>(),
  request: typia.misc.createValidateClone<Requests<ToolCalls>>(),
}
