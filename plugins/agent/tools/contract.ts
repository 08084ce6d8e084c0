import typia, { type tags } from 'typia'
import type { Contract, Requests } from '../../../sdk/contract.js'

/** Text that can be written as UTF-8: it has no half of a surrogate pair. */
type WellFormed = tags.TagBase<{
  target: 'string'
  kind: 'wellFormed'
  value: undefined
  validate: '$input.isWellFormed()'
  exclusive: true
}>
type ToolText<Most extends number> = string & tags.MaxLength<Most> & WellFormed
type ToolWords<Most extends number> = ToolText<Most> & tags.MinLength<1>
/** What a file may hold. */
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
/** A file and the text it is to hold, or to get at its end. */
export interface ContentInput {
  /** The path of the file from the root of the workspace. */
  path: ToolPath
  /** The text. */
  content: FileText
}
/** A replacement in a file. */
export interface EditInput {
  /** The path of the file from the root of the workspace. */
  path: ToolPath
  /** The text to replace, exactly as the file holds it. Without `all` the file must hold it exactly once. */
  old: FileText & tags.MinLength<1>
  /** The text in its place. */
  new: FileText
  /** Replaces every occurrence. */
  all?: boolean
}
/** The file, link or empty folder to delete. */
export interface DeleteInput {
  /** Its path from the root of the workspace. */
  path: ToolPath
}
/** A file, link or folder and its new name. */
export interface MoveInput {
  /** Its path from the root of the workspace. */
  from: ToolPath
  /** Its new path; nothing may have that name yet. */
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
  /** Commands run to their end: only `false` is accepted. */
  background?: boolean
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
  /** Up to 50 headers, without those that say how a request travels. */
  headers?: { [name: string]: string & tags.MaxLength<16384> }
  /** The body; none with `GET` or `HEAD`. */
  body?: ToolText<1048576>
}
/** One item of the list of what is to do. */
export interface TodoInputItem {
  /** What is to do. */
  content: ToolWords<2000>
  status: 'pending' | 'in_progress' | 'completed'
  /** The same in words for while it is done: "Running tests". */
  activeForm?: ToolText<2000>
}
/** The whole list of what is to do. */
export interface TodoInput {
  /** Every item, in order. The list replaces the one before. */
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
  /** Its topic in a word or two; left out: "Question". */
  header?: ToolText<80>
  /** Whether several answers may be chosen. */
  multiSelect?: boolean
  /** The answers to choose from, each with its own label; a person can always answer in words of their own. */
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
  /** What the subagent is to do, in a few words, for people to read. */
  description: ToolWords<2000>
  /** The prompt of the subagent. It knows nothing else of the conversation. */
  prompt: ToolWords<1048576>
  /** Starts the subagent and goes on at once; Join waits for it. */
  background?: boolean
  /** The kind of subagent. */
  agentType?: ToolWords<120>
  /** The model of the subagent; left out: the model of the caller. */
  model?: ToolWords<120>
}
/** The subagents to wait for. */
export interface JoinInput {
  /** The ids of subagents in the background; left out: all that were not waited for yet. */
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

/** The tools of the sandbox, as a model calls them: each answers with a text. */
export interface ToolCalls {
  /** Read a file, or some lines of it. A picture is shown to the person; other binary files are only described. */
  Read(input: ReadInput): string
  /** List a folder. Folders end with `/`, links with `@`. Neither links, `.git` nor `node_modules` are opened. */
  List(input: ListInput): string
  /** Write a whole file, making its folders. */
  Write(input: ContentInput): string
  /** Add a text to the end of a file, or make the file. */
  Append(input: ContentInput): string
  /** Replace a text in a file. */
  Edit(input: EditInput): string
  /** Delete a file, a link or an empty folder. */
  Delete(input: DeleteInput): string
  /** Give a file, link or folder another name. */
  Move(input: MoveInput): string
  /** Run a command in a shell and answer with its output, and its exit code when that is not 0. */
  Shell(input: ShellInput): string
  /** Run JavaScript in a process of its own and answer with what it prints. */
  Code(input: CodeInput): string
  /** Ask a web server and answer with its text. */
  Fetch(input: FetchInput): string
  /** Keep the list of what is to do, which the person sees. */
  Todo(input: TodoInput): string
  /** Ask the person questions and answer with what they say, one line a question. */
  Ask(input: AskInput): string
  /** Put a plan to the person; once it is approved, a turn in plan mode may do what it says. */
  Plan(input: PlanInput): string
  /** Give a part of the work to a subagent and answer with its last words. */
  Delegate(input: DelegateInput): string
  /** Wait for subagents in the background and answer with what became of each. */
  Join(input: JoinInput): string
  /** Read the instructions of a skill, or a file that comes with it. */
  Skill(input: SkillInput): string
}

/** Checks inputs of tools and describes them; what passes is a copy without undeclared fields. */
export const toolInputs: Pick<Contract<ToolCalls>, 'schema' | 'request'> = {
  schema: () => typia.json.application<ToolCalls>(),
  request: typia.misc.createValidateClone<Requests<ToolCalls>>(),
}
