import { NotTheProtocol } from '../../../../sdk/node/programs/piped-process.js'
import type { GatedCall } from '../adapter.js'
import { cut } from '../../tools/content.js'
import { tools } from '../../tools/tools.js'
import type { Frame, Location, ToolCallFrame, ToolCategory, ToolContent, ToolStatus } from '../../turn/frames/frames.js'
import type { CommandEnded } from '../../turn/environment/command-logs.js'
import { servedBy } from '../../tool-server/served-tools.js'
import { countOf, fieldsOf, lineField, listOf, choiceField, textField } from './outside.js'
import type { TreePaths } from './tree-paths.js'

const KINDS: { readonly [kind: string]: ToolCategory } = {
  read: 'read',
  edit: 'edit',
  delete: 'delete',
  move: 'move',
  search: 'search',
  execute: 'execute',
  think: 'think',
  fetch: 'fetch',
  other: 'other',
  switch_mode: 'other',
}
/** The sandbox's tool names for the calls of programs; `allowedTools` and "always allow" refer to them. */
const NAMES: { readonly [category in ToolCategory]: string } = {
  read: 'Read',
  edit: 'Edit',
  delete: 'Delete',
  move: 'Move',
  search: 'Search',
  execute: 'Shell',
  think: 'Think',
  fetch: 'Fetch',
  other: 'Other',
}
const STATUSES = ['pending', 'in_progress', 'completed', 'failed'] as const satisfies ToolStatus[]
const MOST_CALLS = 10_000
const MOST_ID = 200
const MOST_PARTS = 50
const MOST_TEXT = 64 * 1024
const MOST_SIDE = 256 * 1024

/** A command that a program ran by itself, without a terminal of the sandbox. */
export interface OwnCommand extends CommandEnded {
  readonly command: string
  readonly startedAt: number
}

/** A call that the program announced or requests permission for. */
interface Call {
  readonly id: string
  category: ToolCategory
  kind: string
  name: string
  title: string
  status: ToolStatus
  readonly startedAt: number
  command?: string
  /** The sandbox runs its command, and logs it itself. */
  inTerminal?: boolean
  paths: readonly string[]
  terminals: readonly string[]
  /** The fields of its last frames. */
  shown?: Pick<ToolCallFrame, 'name' | 'category' | 'target'>
  /** What a person or the gate allowed: as requested, not as the program describes the call later. */
  granted?: Pick<GatedCall, 'command' | 'path'>
}

const over = ({ status }: Call): boolean => status === 'completed' || status === 'failed'

/** The tool calls of a program in one turn. */
export class AgentCalls {
  readonly #paths: TreePaths
  readonly #outputOf: (terminal: string) => string | undefined
  readonly #ran: (command: OwnCommand) => void
  readonly #calls = new Map<string, Call>()
  readonly #served = new Set<string>()

  /**
   * @param outputOf Returns the output of a terminal of the sandbox.
   * @param ran Called with each command that a program ran by itself, once it has ended.
   */
  constructor(
    paths: TreePaths,
    outputOf: (terminal: string) => string | undefined,
    ran: (command: OwnCommand) => void,
  ) {
    this.#ran = ran
    this.#paths = paths
    this.#outputOf = outputOf
  }

  /** The frames of a `tool_call` or `tool_call_update`. */
  heard(update: { readonly [name: string]: unknown }): Frame[] {
    const id = textField(update.toolCallId, MOST_ID)
    if (!id || this.#isServed(id, update)) return []
    const known = this.#calls.get(id)
    const wasOver = known ? over(known) : false
    const call = this.#read(id, update)
    const locations = this.#locations(update.locations)
    const content = this.#content(call, update.content)
    if (call.terminals.length > 0) call.inTerminal = true
    if (!wasOver && over(call)) this.#note(call, endedAs(call, update.rawOutput, content))
    const shown = { ...(locations.length > 0 && { locations }), ...(content && { content }) }
    if (!known) {
      call.shown = faceOf(call)
      return [{ ...frameOf(call), ...shown }]
    }
    const status = wasOver || update.status === undefined || update.status === null ? {} : { status: call.status }
    const refined = wasOver ? {} : this.#refined(call)
    if (!('status' in status) && Object.keys({ ...shown, ...refined }).length === 0) return []
    return [{ kind: 'tool_call_update', id, ...status, ...refined, ...shown }]
  }

  /** Called at the end of the turn: open calls count as stopped. */
  close(): void {
    for (const call of this.#calls.values()) if (!over(call)) this.#note(call, { output: '' })
  }

  #note({ category, command, inTerminal, startedAt }: Call, ended: CommandEnded): void {
    if (category === 'execute' && command && !inTerminal) this.#ran({ command, startedAt, ...ended })
  }

  /** Whether it is a call to the sandbox's own tool server, which has its own frames. */
  #isServed(id: string, { title, name }: { readonly [name: string]: unknown }): boolean {
    if (!this.#calls.has(id) && servedBy(lineField(name, 80) || lineField(title, 300) || '') !== undefined)
      this.#served.add(id)
    return this.#served.has(id)
  }

  /** The later, precise description of a call that the program announced with a placeholder. */
  #refined(call: Call): Partial<Pick<ToolCallFrame, 'name' | 'category' | 'target'>> {
    const now = faceOf(call)
    const before = call.shown
    call.shown = now
    return Object.fromEntries(Object.entries(now).filter(([key, value]) => value !== before?.[key as keyof typeof now]))
  }

  /** The call of a permission request, as the gate judges it. */
  asked(
    update: unknown,
  ): { readonly gated: GatedCall; readonly switchesMode: boolean; readonly frames: Frame[] } | 'served' {
    const fields = fieldsOf(update)
    const id = textField(fields.toolCallId, MOST_ID) || 'permission'
    if (this.#isServed(id, fields)) return 'served'
    const known = this.#calls.has(id)
    const heard = known ? [] : this.heard({ ...fields, toolCallId: id })
    const call = this.#read(id, fields)
    const refined = known && !over(call) ? this.#refined(call) : {}
    const frames: Frame[] =
      Object.keys(refined).length > 0 ? [...heard, { kind: 'tool_call_update', id, ...refined }] : heard
    const {
      category,
      command,
      paths: [path],
      title,
    } = call
    const gated: GatedCall = {
      id,
      category,
      title,
      name: gateName(call),
      ...(command !== undefined && { command }),
      ...(command === undefined && path !== undefined && { path }),
      ...(fields.rawInput !== undefined && { input: fields.rawInput }),
    }
    return { gated, switchesMode: call.kind === 'switch_mode', frames }
  }

  /** Records a permission, which holds until the call ends: for its path, and once for its command. */
  grant({ id, command, path }: GatedCall): void {
    const call = this.#calls.get(id)
    if (call) call.granted = { ...(command !== undefined && { command }), ...(path !== undefined && { path }) }
  }

  /** Whether the program has announced this call, so that it has frames already. */
  announced({ category, path, command }: Pick<GatedCall, 'category' | 'path' | 'command'>): boolean {
    return [...this.#calls.values()].some(
      call =>
        !over(call)
        && near(call.category, category)
        && (path !== undefined
          ? call.paths.length === 0 || call.paths.includes(path)
          : command === undefined || call.category === 'execute'),
    )
  }

  /** The program has the sandbox run a command: links it to the announced call. */
  runs(command: string): void {
    const open = [...this.#calls.values()].filter(
      call => call.category === 'execute' && !over(call) && !call.inTerminal,
    )
    const call = open.find(each => each.command === command) ?? open[0]
    if (call) call.inTerminal = true
  }

  /** Whether exactly this was permitted; a command only once. */
  allowed({ path, command }: Pick<GatedCall, 'path' | 'command'>): boolean {
    const call = [...this.#calls.values()].find(
      each =>
        each.granted
        && !over(each)
        && (command !== undefined
          ? each.granted.command === command
          : path !== undefined && CHANGES.has(each.category) && each.granted.path === path),
    )
    if (call && command !== undefined) delete call.granted
    return call !== undefined
  }

  /** The frames of calls that show a terminal whose output has grown. */
  grown(terminal: string): Frame[] {
    return [...this.#calls.values()]
      .filter(call => call.terminals.includes(terminal))
      .flatMap(call => {
        const content = this.#terminals(call)
        return content.length > 0 ? [{ kind: 'tool_call_update' as const, id: call.id, content }] : []
      })
  }

  #read(id: string, update: { readonly [name: string]: unknown }): Call {
    const known = this.#calls.get(id)
    if (!known && this.#calls.size >= MOST_CALLS)
      throw new NotTheProtocol(`announced more than ${MOST_CALLS} calls in one turn`)
    const call: Call = known ?? {
      id,
      kind: 'other',
      category: 'other',
      name: '',
      title: '',
      status: 'pending',
      startedAt: Date.now(),
      paths: [],
      terminals: [],
    }
    this.#calls.set(id, call)
    const kind = choiceField(update.kind, Object.keys(KINDS))
    const title = lineField(update.title, 300)
    const name = lineField(update.name, 80)
    const input = fieldsOf(update.rawInput)
    const command = commandOf(input)
    const paths = [
      ...listOf(update.locations, MOST_PARTS).map(each => fieldsOf(each).path),
      input.path,
      input.file_path,
      ...listOf(update.content, MOST_PARTS)
        .map(fieldsOf)
        .filter(({ type }) => type === 'diff')
        .map(({ path }) => path),
    ].flatMap(path => (typeof path === 'string' ? [this.#paths.within(path) ?? path.slice(0, 4096)] : []))
    if (kind) Object.assign(call, { kind, category: KINDS[kind]! })
    if (title) call.title = title
    if (name) call.name = name
    if (paths.length > 0) call.paths = [...new Set(paths)]
    if (call.category === 'execute') call.command = command ?? call.command ?? call.title
    // An ended call stays ended, whatever the program sends later.
    if (!over(call)) call.status = choiceField(update.status, STATUSES) ?? call.status
    return call
  }

  #locations(value: unknown): Location[] {
    return listOf(value, MOST_PARTS).flatMap(each => {
      const { path, line } = fieldsOf(each)
      const place = typeof path === 'string' ? this.#paths.within(path) : undefined
      const at = countOf(line)
      return place === undefined ? [] : [{ path: place, ...(at && { line: at }) }]
    })
  }

  #content(call: Call, value: unknown): ToolContent[] | undefined {
    if (!Array.isArray(value)) return call.terminals.length > 0 && over(call) ? this.#terminals(call) : undefined
    const parts = listOf(value, MOST_PARTS).map(fieldsOf)
    call.terminals = parts.flatMap(({ type, terminalId }) =>
      type === 'terminal' && typeof terminalId === 'string' ? [terminalId] : [],
    )
    return [...parts.flatMap(part => this.#part(part)), ...this.#terminals(call)]
  }

  #terminals({ terminals }: Call): ToolContent[] {
    return terminals.flatMap(id => {
      const output = this.#outputOf(id)
      return output ? [{ type: 'text' as const, text: cut(output) }] : []
    })
  }

  #part(part: { readonly [name: string]: unknown }): ToolContent[] {
    if (part.type === 'diff') {
      const [path, newText, oldText] = [
        textField(part.path, 4096),
        textField(part.newText, MOST_SIDE),
        textField(part.oldText, MOST_SIDE),
      ]
      if (path === undefined || newText === undefined) return []
      return [
        { type: 'diff', path: this.#paths.within(path) ?? path, ...(oldText !== undefined && { oldText }), newText },
      ]
    }
    if (part.type !== 'content') return []
    const { type, uri, mimeType, resource, ...content } = fieldsOf(part.content)
    const { text } = type === 'resource' ? fieldsOf(resource) : content
    if (type === 'text' || type === 'resource')
      return typeof text === 'string' && text ? [{ type: 'text', text: cut(textField(text, MOST_TEXT)!) }] : []
    const picture =
      type === 'resource_link'
      && typeof uri === 'string'
      && typeof mimeType === 'string'
      && mimeType.startsWith('image/')
    const path = picture ? this.#paths.linked(uri) : undefined
    return path === undefined ? [] : [{ type: 'image', path }]
  }
}

/** A program's call has the name of a sandbox tool if both are of the same category. */
const gateName = ({ name, category }: Call): string =>
  Object.hasOwn(tools, name) && tools[name]!.category === category ? name : NAMES[category]

const commandOf = ({ command, args }: { readonly [name: string]: unknown }): string | undefined => {
  const words = Array.isArray(command) ? command : [command, ...(Array.isArray(args) ? args : [])]
  return words.length > 0 && words.every(word => typeof word === 'string')
    ? words.join(' ').slice(0, 100_000).toWellFormed() || undefined
    : undefined
}

/** How a command that a program ran by itself ended, as far as the program reports it. */
const endedAs = ({ status }: Call, rawOutput: unknown, content: readonly ToolContent[] | undefined): CommandEnded => {
  const raw = fieldsOf(rawOutput)
  const exit = [raw.exitCode, raw.exit_code, raw.exit, fieldsOf(raw.metadata).exit].find(
    code => typeof code === 'number' && Number.isInteger(code),
  )
  const shown = (content ?? []).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')
  const output = shown || textField(typeof rawOutput === 'string' ? rawOutput : raw.output, MOST_TEXT) || ''
  return { said: status === 'failed' ? 'failed' : 'completed', ...(typeof exit === 'number' && { exit }), output }
}

const CHANGES = new Set<ToolCategory>(['edit', 'delete', 'move'])

const near = (one: ToolCategory, other: ToolCategory): boolean =>
  one === other || (CHANGES.has(one) && CHANGES.has(other)) || (CHANGES.has(one) && other === 'read')

const frameOf = (call: Call): ToolCallFrame => ({
  kind: 'tool_call',
  id: call.id,
  status: call.status,
  ...faceOf(call),
})

/** How a call is shown to people: a command as it is run, not by the program's title. */
const faceOf = ({ name, category, title, command }: Call): Pick<ToolCallFrame, 'name' | 'category' | 'target'> => {
  const target = (category === 'execute' ? command : undefined) || title
  return { name: name || NAMES[category], category, ...(target && { target: target.slice(0, 200).toWellFormed() }) }
}
