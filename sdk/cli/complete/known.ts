import type { Routed } from '../../client.js'
import type { CliVerb } from '../../cli-table.js'
import { connectionArgs, connectionFlag, parsed } from '../arguments.js'
import { fieldOf } from '../calls/answer.js'
import { calls, operations } from '../calls/list.js'
import { bareOf, type GroupCommand, commandNamed, groupCommands, tableOf } from '../calls/tables.js'
import type { Field, Operation } from '../calls/operation.js'
import { connected } from '../daemon/connection.js'
import { oneLine, short } from '../terminal/text.js'
import type { GivenArguments, Terminal } from '../verb.js'

/** How long a completion waits for the daemon, unless SANDBOX_COMPLETION_MS says otherwise. */
const PATIENCE_MS = 300

/** Fields that tell one entry from another, and those that say what it is. */
const NAMES = ['id', 'conversationId', 'key', 'name', 'requestId', 'email', 'path', 'repo', 'provider', 'port']
const ABOUT = ['title', 'label', 'goal', 'description', 'status', 'state', 'kind']

/** A word that fits, and what it is. */
export interface FittingWord {
  readonly value: string
  readonly about?: string
}

type Row = { readonly [field: string]: unknown }

/** What the daemon says within 300 ms, for completion: silently nothing afterwards, or without a daemon. */
export class Known {
  readonly #terminal: Terminal
  readonly #given: GivenArguments
  #operations: Promise<Operation[]> | undefined

  constructor(terminal: Terminal, words: readonly string[]) {
    const patience = Number(terminal.env.SANDBOX_COMPLETION_MS) || PATIENCE_MS
    const signal = AbortSignal.any([terminal.signal, AbortSignal.timeout(patience)])
    const { sign: _, ...quiet } = terminal
    this.#terminal = { ...quiet, signal }
    // The value of the last option may be what is completed.
    const last = connectionFlag(words.at(-1))?.value === undefined ? words : words.slice(0, -1)
    this.#given = parsed(calls, connectionArgs(last))
  }

  /** The commands of a group; undefined: the daemon does not say. */
  async commands(group: string): Promise<GroupCommand[] | undefined> {
    this.#operations ??= operations(this.#terminal, this.#given).catch(() => [])
    const all = (await this.#operations).filter(each => each.group === group)
    return all.length ? groupCommands(all, await tableOf(this.#terminal, group)) : undefined
  }

  /** The names of a group's verbs that are known without a daemon. */
  async names(group: string): Promise<string[]> {
    return Object.keys((await tableOf(this.#terminal, group))?.verbs ?? {})
  }

  /** The entries that a verb of a group lists. */
  async ids(group: string, verb: string): Promise<FittingWord[]> {
    const known = (await tableOf(this.#terminal, group))?.verbs[verb]
    if (known) return this.#listed(known.call, known)
    const command = commandNamed((await this.commands(group)) ?? [], verb)
    return command ? this.#listed(command.operation.call, command.verb) : []
  }

  /** The values of a field of a command: what its group lists. */
  async values({ operation: { group }, verb }: GroupCommand, { name }: Field): Promise<FittingWord[]> {
    if (name === 'conversationId') return this.ids('agents', 'list')
    const list = verb?.ids?.[name]
    if (list !== undefined) return this.ids(group, list)
    const isName = NAMES.includes(name) || name === 'ids'
    const table = await tableOf(this.#terminal, group)
    const bare = isName ? bareOf((await this.commands(group)) ?? [], table) : undefined
    return bare ? this.#listed(bare.operation.call, bare.verb, name) : []
  }

  async #listed(call: string, verb: CliVerb | undefined, field?: string): Promise<FittingWord[]> {
    const { signal } = this.#terminal
    if (!call.startsWith('GET ') || verb?.rows === undefined) return []
    const answer = await within(
      signal,
      connected(this.#terminal, this.#given, ({ client }) =>
        client.call(call as Routed, (verb.fill?.({}) ?? {}) as never, { signal }),
      ),
    )
    const rows = [verb.rows].flat().flatMap(each => fieldOf(answer, each) ?? [])
    return rows.flatMap(row => candidateOf(row, field))
  }
}

const candidateOf = (row: unknown, field: string | undefined): FittingWord[] => {
  if (typeof row === 'string') return [{ value: row }]
  const has = (name: string) => ['string', 'number'].includes(typeof (row as Row)[name])
  const name = [...(field === undefined ? [] : [field]), ...NAMES].find(has)
  const about = ABOUT.find(has)
  return name === undefined
    ? []
    : [
        {
          value: String((row as Row)[name]),
          ...(about !== undefined && about !== name && { about: short(oneLine(String((row as Row)[about])), 60) }),
        },
      ]
}

/** An answer, or undefined when it fails or comes too late. */
const within = <T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> =>
  Promise.race([
    work.catch(() => undefined),
    new Promise<undefined>(resolve => {
      if (signal.aborted) resolve(undefined)
      signal.addEventListener('abort', () => resolve(undefined))
    }),
  ])
