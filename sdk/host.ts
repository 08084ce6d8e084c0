import type { tags } from 'typia'
import type { Api, Events, Points } from './api.js'
import type { Args, Call, Context, Contract, Input, Position, Reply } from './contract.js'
import { explainInput } from './explain.js'
import { Refusal, refuse } from './refusal.js'
import { ignored } from './ignored.js'

/** Documents by key, as JSON values. A write is durable when it returns. */
export interface Store {
  get<T>(key: string): Promise<T | undefined>
  set(key: string, value: unknown): Promise<void>
  delete(key: string): Promise<void>
  /** Every document of this plugin, or those whose keys begin with a prefix, in no order. */
  all<T>(prefix?: string): Promise<[key: string, value: T][]>
  /** As `all`, with each document as JSON text: for documents that are parsed when they are needed. */
  texts(prefix?: string): Promise<[key: string, json: string][]>
}

export interface AppendOptions {
  /** Wait until the entries would survive a power cut, not only the end of the process. */
  readonly flush?: boolean
}

export interface ReadOptions {
  /** Returned in place of an entry that is not valid JSON; without it, reading a damaged journal fails. */
  readonly damaged?: object
}

/**
 * Append-only logs, by name (`frames/r-1`). Each entry is serialised and written once.
 *
 * A journal named `frames/…` contains server-sent events: watchers receive its bytes, and an entry has the event id
 * `<last part of the name>:<position>`. Every other journal contains one JSON value per line.
 */
export interface Journals {
  /** Appends entries in order and returns the position of the last. They survive `kill -9` once it resolves. */
  append(journal: string, entries: readonly unknown[], options?: AppendOptions): Promise<number>
  /** Closes a journal of events; every watcher receives the tail last, as events without a position. */
  close(journal: string, tail: readonly { event: 'message' | 'done' | 'error'; data: unknown }[]): Promise<void>
  /** Ends the streams of those who watch a journal now with events that are not stored; the journal stays open. */
  interrupt(journal: string, tail: readonly { event: 'message' | 'done' | 'error'; data: unknown }[]): Promise<void>
  /** The complete entries after a position; drops a partly written last entry. Empty if there is no such journal. */
  read<T>(journal: string, after?: number, options?: ReadOptions): Promise<T[]>
  /** The number of entries, and whether it was closed; undefined if there is no such journal. */
  stat(journal: string): Promise<{ entries: number; closed: boolean } | undefined>
  /** Replaces the journal atomically: readers see the old one or the new one. */
  rewrite(journal: string, entries: readonly unknown[]): Promise<void>
  /** Renames a journal, replacing one with the new name. */
  rename(journal: string, to: string): Promise<void>
  remove(journal: string): Promise<void>
  /** Names that begin with a prefix. */
  list(prefix: string): Promise<string[]>
  /** Continues a stream with this journal: the entries after a position, then new ones until it is closed. */
  follow(journal: string, after: number): Position
}

/** JSON files, written atomically (temporary file, fsync, rename). */
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

/** Limits for the programs of one turn; the defaults suit builds. */
export interface LimitSettings {
  /** Memory of all programs of a turn together; default: 75 % of the machine's. */
  memory?: HostSize
  /** Processes and threads of a turn; default: 1,024 plus 128 for each processor. */
  processes?: number & tags.Type<'uint32'> & tags.Minimum<16>
  /** Open files of the programs of a turn; default: 65,536. */
  openFiles?: number & tags.Type<'uint32'> & tags.Minimum<64>
  /** The size of one file; default: 32 GiB, or half the disk if that is less. */
  fileSize?: HostSize
  /** Pseudo-terminals of the programs of a turn; default: 256. */
  pseudoTerminals?: number & tags.Type<'uint32'> & tags.Minimum<8>
}

/** An absolute path of the machine, set by a deployment. */
export type MachinePath = string & tags.Pattern<'^/[^\\0]*$'>

/** The free trial of models that a deployment offers. */
export interface TrialSettings {
  /** The address of its server: `<url>/status` returns the remaining budget, and the models are below `<url>/v1`. */
  url: string & tags.Pattern<'^https?://[^\\s?#@]+$'>
  /** A file with the bearer token of the server. */
  tokenFile?: MachinePath
}

/** The deployment's model settings. */
export interface ModelSettings {
  /** A folder with further definitions of providers, one `<id>.json` each. */
  providers?: MachinePath
  /** A JSON file that lists the local models that can be downloaded; default: none. */
  local?: MachinePath
  /** The program `llama-server`, which runs local models; default: the one on the PATH. */
  server?: MachinePath
  /** The free trial; default: none. */
  trial?: TrialSettings
}

/** The deployment's settings of push notifications. */
export interface PushSettings {
  /** Push services and relays may have private and loopback addresses; default: false. */
  privateNetworks?: boolean
}

/** The deployment's settings of network disks. */
export interface MountSettings {
  /** The folder in which each share has its folder; default: `/mnt/sandbox`. */
  root?: MachinePath
}

/** A network that wallets pay on. */
export interface WalletNetwork {
  /** Its endpoint. */
  rpcUrl: string & tags.Pattern<'^https?://[^\\s#@]+$'>
  /** The contract of its dollars; default: USD Coin where its contract is known. */
  asset?: string & tags.Pattern<'^0x[0-9a-fA-F]{40}$'>
}

/** The deployment's settings of wallets. */
export interface WalletSettings {
  /** By name: `eip155:` and the number of a chain. */
  networks?: { [network: string]: WalletNetwork }
}

/** The deployment's settings of exits. */
export interface ExitSettings {
  /** Addresses that say which address asked them, in the order in which they are asked; default: three public ones. */
  checks?: ExitAddress[]
  /** The list of free servers of OpenVPN, as CSV; default: that of VPN Gate. */
  pool?: ExitAddress
  /** What each exit relay of the onion network can carry, as JSON; default: that of the Tor Project. */
  relays?: ExitAddress
  /** Lines added to the configuration of `tor`, such as directory authorities of one's own. */
  torrc?: (string & tags.Pattern<'^[ -~]*$'>)[]
  /** A file with ranges of addresses and their countries; default: that of `tor-geoipdb`. */
  ranges?: MachinePath
}

type ExitAddress = string & tags.Pattern<'^https?://[^\\s#@]+$'>

/** The deployment's settings of previews. */
export interface PreviewSettings {
  /** The port of the preview listener; 0: a free one. Default: the one after that of the calls, else a free one. */
  port?: number & tags.Type<'uint32'> & tags.Maximum<65535>
  /**
   * The address below which previews have their names, such as `https://previews.example.org`: a wildcard certificate
   * and a proxy of the deployment serve it. Default: names below `localhost`.
   */
  zone?: string & tags.Pattern<'^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$'>
}

/** Where previews are served. */
export interface PreviewPlace extends PreviewSettings {
  /** The host on which the preview listener listens. */
  host: string
}

/** The deployment's settings of public files and pages. */
export interface PublicSettings {
  /** `off`: nothing is published, and nothing published is served. Default: `on`. */
  serve?: 'on' | 'off'
  /**
   * A host of their own with its port unless that is the default, such as `files.example.org`: it answers nothing else,
   * so pages there keep their origin.
   */
  host?: string & tags.Pattern<'^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$'>
}

/** Where public files and pages are served. */
export interface PublicPlace extends PublicSettings {
  /** The address that the deployment gives to links. */
  url?: string
}

/** What a deployment sets for single groups. */
export interface GroupSettings {
  /** Providers of models, and the free trial. */
  readonly models?: ModelSettings
  /** Where notifications may be sent. */
  readonly push?: PushSettings
  /** Where shares of other machines are mounted. */
  readonly mounts?: MountSettings
  /** The networks of wallets. */
  readonly wallet?: WalletSettings
  /** What exits ask, and how they start `tor`. */
  readonly exit?: ExitSettings
}

/** The daemon that a plugin runs in; constant while it runs. */
export interface Place extends GroupSettings {
  /** The workspace's real path. */
  readonly workspace: string
  /**
   * Where the daemon's data folder is, which walls hide and in which they keep homes and caches. Plugins read and write
   * below `folder` and `logs` alone.
   */
  readonly data: string
  /** The folder of all log files. */
  readonly logs: string
  /** This plugin's folder in the data folder, created on activation. */
  readonly folder: string
  /** The folder of the built program, which contains `kernel/`, `plugins/` and `sdk/`. */
  readonly root: string
  /** Files and folders elsewhere that no turn may see, such as the folder of the login socket. */
  readonly hidden: readonly string[]
  /** Files and folders that the deployment makes visible behind every wall. */
  readonly grants: WallGrants
  /** The deployment's limits for turns. */
  readonly limits: LimitSettings
  /** Where previews are served. */
  readonly previews: PreviewPlace
  /** Where public files and pages are served. */
  readonly publicPages: PublicPlace
}

/** Absolute paths of files and folders that are visible behind every wall, besides the system's own. */
export interface WallGrants {
  readonly read: readonly string[]
  readonly write: readonly string[]
}

type Contribution<P extends keyof Points> = Awaited<ReturnType<Points[P]>>

/** Everything a plugin can use. The same in the daemon's process and in a separate process. */
export interface Host {
  readonly id: string
  readonly place: Place
  readonly log: Log
  /** Aborted when the plugin stops, after everything it registered here was removed. */
  readonly signal: AbortSignal
  readonly store: Store
  readonly journal: Journals
  readonly files: Files
  /** Registers the handlers of a contract's calls. */
  serve<Handlers extends object>(contract: Contract & { handlers?: Handlers }, handlers: Handlers): Promise<void>
  /** Makes a call that the manifest declares in its permissions. */
  call<C extends Call<Api>>(call: C, ...args: Args<Input<Api, C>>): Promise<Reply<Api, C>>
  /** Whether a call is served; for calls that the manifest declares as `late`. */
  serves(call: Call<Api>): Promise<boolean>
  emit<E extends keyof Events>(event: E, data: Events[E]): void
  on<E extends keyof Events>(event: E, listener: (data: Events[E]) => void): void
  /** Contributes to a point that another plugin collects. */
  contribute<P extends keyof Points>(point: P, give: Points[P]): void
  /** Everything contributed to a point; skips contributors that failed. */
  collect<P extends keyof Points>(point: P): Promise<Contribution<P>[]>
  /**
   * Makes a call that a contribution to a point of this plugin names; of the groups that add to this point only. The
   * answer has the shape that the point asks of the call.
   */
  through(point: keyof Points, call: string, input: object, options?: { signal?: AbortSignal }): Promise<unknown>
  /** Adds a boot step. The group's calls wait until it is done, and answer 503 if it throws. */
  boot(label: string, step: () => Promise<void>): void
  /** Registers work for shutdown, run before `signal` is aborted. All groups together have 8 s. */
  stopping(work: () => Promise<void>): void
}

export type Activate = (host: Host) => Promise<void> | void

/** Answers one call; an async-iterable result is a stream. */
export type Answer = (call: string, input: unknown, context: Context) => Promise<unknown>

/** A host's connection to the kernel, direct or over a pipe. */
export interface Link {
  request(call: string, input: unknown, options?: { signal?: AbortSignal; as?: Context }): Promise<unknown>
}

interface Handler {
  readonly run: (input: never, context: Context) => unknown
  readonly contract: Contract
}

/** Builds the host of a plugin, and the function through which the kernel calls into the plugin. */
export const createHost = (id: string, place: Place, link: Link): { host: Host; answer: Answer } => {
  const handlers = new Map<string, Handler>()
  const listeners = new Map<string, ((data: never) => void)[]>()
  const contributions = new Map<string, () => unknown>()
  const steps: (() => Promise<void>)[] = []
  const lastWork: (() => Promise<void>)[] = []
  const stopping = new AbortController()
  const ask = <T>(call: string, input: object) => link.request(call, input) as Promise<T>
  const send = (call: string, input: object) =>
    void ask(call, input).catch(error => host.log.error(`${call} failed`, { error: String(error) }))
  const log = (level: keyof Log) => (message: string, fields?: object) =>
    void link.request('host.log', { level, message, fields }).catch(ignored('the connection to the daemon has ended'))

  const host: Host = {
    id,
    place,
    signal: stopping.signal,
    log: { info: log('info'), warn: log('warn'), error: log('error') },
    store: {
      get: key => ask('host.store.get', { key }),
      set: (key, value) => ask('host.store.set', { key, value }),
      delete: key => ask('host.store.delete', { key }),
      all: (prefix = '') => ask('host.store.all', { prefix }),
      texts: (prefix = '') => ask('host.store.texts', { prefix }),
    },
    journal: {
      append: (journal, entries, options) => ask('host.journal.append', { journal, entries, ...options }),
      close: (journal, tail) => ask('host.journal.close', { journal, tail }),
      interrupt: (journal, tail) => ask('host.journal.interrupt', { journal, tail }),
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
    emit: (event, data) => send('host.emit', { event, data }),
    on: (event, listener) => {
      const known = listeners.get(event)
      if (known) return void known.push(listener)
      listeners.set(event, [listener])
      send('host.on', { event })
    },
    contribute: (point, give) => {
      contributions.set(point, give)
      send('host.contribute', { point })
    },
    collect: point => ask('host.collect', { point }),
    through: (point, call, value, options) => link.request('host.through', { point, call, value }, options),
    boot: (label, step) => {
      send('host.boot', { label, step: steps.push(step) - 1 })
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

/** Returns the input with only its declared fields; refuses invalid input. */
const checked = (contract: Contract, call: string, input: unknown): unknown => {
  const result = contract.request({ call, input })
  if (result.success) return result.data.input
  const { message, errors } = explainInput(result.errors, contract)
  throw new Refusal('invalid', message, { errors })
}
