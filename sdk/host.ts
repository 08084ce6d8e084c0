import type { tags } from 'typia'
import type { Api, Events, Points } from './api.js'
import type { Args, Call, Context, Contract, Input, Position, Reply } from './contract.js'
import { explainInput } from './explain.js'
import { Refusal, refuse } from './refusal.js'

/** Documents by key, as JSON values. A write is durable when it returns. */
export interface Store {
  get<T>(key: string): Promise<T | undefined>
  set(key: string, value: unknown): Promise<void>
  delete(key: string): Promise<void>
  /** Every document of this plugin, in no order. */
  all<T>(): Promise<[key: string, value: T][]>
}

export interface AppendOptions {
  /** Wait until the entries would survive a power cut, not only the end of the process. */
  readonly flush?: boolean
}

export interface ReadOptions {
  /** What is read in the place of an entry that is no JSON any more; without it a damaged journal cannot be read. */
  readonly damaged?: object
}

/**
 * Append-only logs, by name (`frames/r-1`). An entry is serialised once and written once.
 *
 * A journal named `frames/…` holds wire events: its bytes are what watchers receive, and an entry's position is its
 * event id `<last part of the name>:<position>`. Every other journal holds one JSON value a line.
 */
export interface Journals {
  /** Appends entries in order and answers the position of the last. When it returns they survive `kill -9`. */
  append(journal: string, entries: readonly unknown[], options?: AppendOptions): Promise<number>
  /** Closes a journal of events: every watcher gets the tail last, as control events without a position. */
  close(journal: string, tail: readonly { event: 'message' | 'done' | 'error'; data: unknown }[]): Promise<void>
  /** The entries after a position, whole ones only; a torn last entry is dropped. Empty when there is none. */
  read<T>(journal: string, after?: number, options?: ReadOptions): Promise<T[]>
  /** How many entries there are, and whether it was closed; undefined when there is no such journal. */
  stat(journal: string): Promise<{ entries: number; closed: boolean } | undefined>
  /** Replaces the whole journal in one step: readers see the old one or the new one. */
  rewrite(journal: string, entries: readonly unknown[]): Promise<void>
  /** Renames a journal; replaces a journal of the new name. */
  rename(journal: string, to: string): Promise<void>
  remove(journal: string): Promise<void>
  /** Names that begin with a prefix. */
  list(prefix: string): Promise<string[]>
  /** A stream's continuation: this journal after a position, then live until it is closed. */
  follow(journal: string, after: number): Position
}

/** Whole JSON files, written atomically (temporary file, fsync, rename) and read back as they were. */
export interface Files {
  read<T>(name: string): Promise<T | undefined>
  write(name: string, value: unknown): Promise<void>
  remove(name: string): Promise<void>
  list(prefix: string): Promise<string[]>
}

export interface Log {
  info(message: string, fields?: object): void
  warn(message: string, fields?: object): void
  error(message: string, fields?: object): void
}

/** A size such as `512MiB` or `8GiB`. */
export type HostSize = string & tags.Pattern<'^(0[.][0-9]{1,3}|[1-9][0-9]{0,5}([.][0-9]{1,3})?)(MiB|GiB|TiB)$'>

/** What the programs of one turn may use; what is left out suits builds. */
export interface LimitSettings {
  /** Memory of all programs of a turn together; 75 % of the machine's when left out. */
  memory?: HostSize
  /** Processes and threads of a turn; 1,024 and 128 for each processor when left out. */
  processes?: number & tags.Type<'uint32'> & tags.Minimum<16>
  /** Files that the programs of a turn hold open; 65,536 when left out. */
  openFiles?: number & tags.Type<'uint32'> & tags.Minimum<64>
  /** The size of one file; 32 GiB, or half the disk where that is less, when left out. */
  fileSize?: HostSize
}

/** A path of the machine that a deployment names. */
export type MachinePath = string & tags.Pattern<'^/[^\\0]*$'>

/** The free trial of models that a deployment offers. */
export interface TrialSettings {
  /** Where its server is: `<url>/status` says what is left, its models are below `<url>/v1`. */
  url: string & tags.Pattern<'^https?://[^\\s?#@]+$'>
  /** A file that holds the bearer token of the server. */
  tokenFile?: MachinePath
}

/** What the deployment says of models. */
export interface ModelSettings {
  /** A folder with definitions of providers, one `<id>.json` each, beside those of the product. */
  providers?: MachinePath
  /** A file with the local models that can be fetched, as a JSON list; there are none when left out. */
  local?: MachinePath
  /** The free trial; there is none when left out. */
  trial?: TrialSettings
}

/** What a plugin knows about the daemon it runs in. Nothing here changes while the daemon runs. */
export interface Place {
  /** The workspace's real path. */
  readonly workspace: string
  /** The daemon's data folder: outside the workspace, closed to every turn. */
  readonly data: string
  /** This plugin's own folder in it, made on activation. */
  readonly folder: string
  /** The folder of the built program, which holds `kernel/`, `plugins/` and `sdk/`. */
  readonly root: string
  /** Files and folders elsewhere that no turn may see, such as the folder of the login socket. */
  readonly hidden: readonly string[]
  /** What the deployment shows to everything behind a wall. */
  readonly grants: WallGrants
  /** The limits of turns that the deployment sets. */
  readonly limits: LimitSettings
  /** What the deployment says of models. */
  readonly models?: ModelSettings
}

/** Files and folders of the machine that are there behind every wall, beside the system's own; absolute paths. */
export interface WallGrants {
  readonly read: readonly string[]
  readonly write: readonly string[]
}

type Contribution<P extends keyof Points> = Awaited<ReturnType<Points[P]>>

/** All a plugin can reach. The same object in the daemon's process and in a process of its own. */
export interface Host {
  readonly id: string
  readonly place: Place
  readonly log: Log
  /** Aborted when the plugin is switched off. Whatever the plugin registered here is dropped by then. */
  readonly signal: AbortSignal
  readonly store: Store
  readonly journal: Journals
  readonly files: Files
  /** Answers the calls of a contract. */
  serve<Handlers extends object>(contract: Contract & { handlers?: Handlers }, handlers: Handlers): Promise<void>
  /** Makes a call the manifest's permissions declare. */
  call<C extends Call<Api>>(call: C, ...args: Args<Input<Api, C>>): Promise<Reply<Api, C>>
  /** Whether anything serves a call now; for those the manifest declares `late`. */
  serves(call: Call<Api>): Promise<boolean>
  emit<E extends keyof Events>(event: E, data: Events[E]): void
  on<E extends keyof Events>(event: E, listener: (data: Events[E]) => void): void
  /** Adds to a point another plugin collects. */
  contribute<P extends keyof Points>(point: P, give: Points[P]): void
  /** Everything contributed to a point; skips contributors that failed. */
  collect<P extends keyof Points>(point: P): Promise<Contribution<P>[]>
  /** Work between listening and being ready; while it runs the group's calls wait, and if it throws they answer 503. */
  boot(label: string, step: () => Promise<void>): void
  /** Runs when the daemon stops, before `signal` is aborted: at most 8 s to bring work to a safe place. */
  stopping(work: () => Promise<void>): void
}

export type Activate = (host: Host) => Promise<void> | void

/** Answers one call; a result that is async-iterable is a stream. */
export type Answer = (call: string, input: unknown, context: Context) => Promise<unknown>

/** The far side of a host: the kernel, reached directly or over a pipe. */
export interface Link {
  request(call: string, input: unknown, options?: { signal?: AbortSignal; as?: Context }): Promise<unknown>
}

interface Handler {
  readonly run: (input: never, context: Context) => unknown
  readonly contract: Contract
}

/** Builds the host a plugin sees and the function through which the kernel calls into the plugin. */
export const createHost = (id: string, place: Place, link: Link): { host: Host; answer: Answer } => {
  const handlers = new Map<string, Handler>()
  const listeners = new Map<string, ((data: never) => void)[]>()
  const contributions = new Map<string, () => unknown>()
  const steps: (() => Promise<void>)[] = []
  const lastWork: (() => Promise<void>)[] = []
  const stopping = new AbortController()
  const ask = <T>(call: string, input: object) => link.request(call, input) as Promise<T>
  const tell = (call: string, input: object) =>
    void ask(call, input).catch(error => host.log.error(`${call} failed`, { error: String(error) }))
  const log = (level: keyof Log) => (message: string, fields?: object) =>
    void link.request('host.log', { level, message, fields }).catch(() => {})

  const host: Host = {
    id,
    place,
    signal: stopping.signal,
    log: { info: log('info'), warn: log('warn'), error: log('error') },
    store: {
      get: key => ask('host.store.get', { key }),
      set: (key, value) => ask('host.store.set', { key, value }),
      delete: key => ask('host.store.delete', { key }),
      all: () => ask('host.store.all', {}),
    },
    journal: {
      append: (journal, entries, options) => ask('host.journal.append', { journal, entries, ...options }),
      close: (journal, tail) => ask('host.journal.close', { journal, tail }),
      read: (journal, after = 0, options) => ask('host.journal.read', { journal, after, ...options }),
      stat: journal => ask('host.journal.stat', { journal }),
      rewrite: (journal, entries) => ask('host.journal.rewrite', { journal, entries }),
      rename: (journal, to) => ask('host.journal.rename', { journal, to }),
      remove: journal => ask('host.journal.remove', { journal }),
      list: prefix => ask('host.journal.list', { prefix }),
      follow: (journal, after) => ({ journal: `${id}/${journal}`, after }),
    },
    files: {
      read: name => ask('host.files.read', { name }),
      write: (name, value) => ask('host.files.write', { name, value }),
      remove: name => ask('host.files.remove', { name }),
      list: prefix => ask('host.files.list', { prefix }),
    },
    serve: async (contract, added) => {
      for (const [call, run] of Object.entries(added)) handlers.set(call, { run, contract })
      await link.request('host.serve', { calls: Object.keys(added) })
    },
    call: (call, ...[input, options]) => link.request(call, input ?? {}, options) as never,
    serves: call => ask('host.serves', { call }),
    emit: (event, data) => tell('host.emit', { event, data }),
    on: (event, listener) => {
      const heard = listeners.get(event)
      if (heard) return void heard.push(listener)
      listeners.set(event, [listener])
      tell('host.on', { event })
    },
    contribute: (point, give) => {
      contributions.set(point, give)
      tell('host.contribute', { point })
    },
    collect: point => ask('host.collect', { point }),
    boot: (label, step) => {
      tell('host.boot', { label, step: steps.push(step) - 1 })
    },
    stopping: work => void lastWork.push(work),
  }

  const answer: Answer = async (call, input, context) => {
    const { event, data, point, step } = input as { event: string; data: never; point: string; step: number }
    switch (call) {
      case 'plugin.event':
        return void listeners.get(event)?.forEach(listener => listener(data))
      case 'plugin.contribution':
        return contributions.get(point)?.()
      case 'plugin.boot':
        return steps[step]?.()
      case 'plugin.stopping':
        return void (await Promise.allSettled(lastWork.map(work => work())))
      case 'plugin.stop':
        return stopping.abort()
    }
    const { run, contract } = handlers.get(call) ?? refuse('not-found', `${id} does not serve ${call}`)
    return run((context.trusted ? input : checked(contract, call, input)) as never, context)
  }

  return { host, answer }
}

/** The input reduced to the declared fields, or a refusal that names what is invalid. */
const checked = (contract: Contract, call: string, input: unknown): unknown => {
  const result = contract.request({ call, input })
  if (result.success) return result.data.input
  const { message, errors } = explainInput(result.errors, contract)
  throw new Refusal('invalid', message, { errors })
}
