import { isStream } from '../sdk/wire.js'
import { isPosition, type Context } from '../sdk/contract.js'
import type { Answer, AppendOptions, Link, Log, ReadOptions, Store } from '../sdk/host.js'
import { refuse } from '../sdk/refusal.js'
import type { Boot } from './boot.js'
import type { Calls, Principal } from './calls.js'
import { KERNEL, type EventBus } from './events.js'
import type { Live } from './streams/live.js'
import type { FileStore } from './storage/files.js'
import type { JournalStore } from '../sdk/node/journal/journal-store.js'

/** The kernel services that plugins use. */
export interface KernelServices {
  readonly calls: Calls
  readonly events: EventBus
  readonly live: Live
  readonly boot: Boot
  readonly journals: JournalStore
  readonly files: FileStore
  readonly store: (plugin: string) => Store
  readonly log: (plugin: string) => Log
}

/** What a group registers while it starts: its calls, and the steps that must end before these are answered. */
export interface Registration {
  readonly served: Map<string, Answer>
  readonly steps: { label: string; run: () => Promise<unknown> }[]
}

/** The fields of all `host.…` requests; each request has some of them. */
interface Asked {
  calls: string[]
  call: string
  event: string
  data: unknown
  point: string
  label: string
  step: number
  key: string
  value: unknown
  journal: string
  to: string
  entries: unknown[]
  flush?: AppendOptions['flush']
  damaged?: ReadOptions['damaged']
  tail: { event: 'message' | 'done' | 'error'; data: unknown }[]
  after: number
  prefix: string
  name: string
  level: keyof Log
  message: string
  fields?: object
}

/** The kernel's end of one plugin's link: answers `host.…` requests, and passes every other call to the call table. */
export class PluginLink implements Link {
  readonly #kernel: KernelServices
  readonly #principal: Principal
  readonly #into: Answer
  readonly #registered: Registration
  readonly #serving = new Set<Context>()

  /** @param into Calls into the plugin. */
  constructor(kernel: KernelServices, principal: Principal, into: Answer, registered: Registration) {
    this.#kernel = kernel
    this.#principal = principal
    this.#into = into
    this.#registered = registered
  }

  async request(
    call: string,
    input: unknown,
    { signal, as }: { signal?: AbortSignal; as?: Context } = {},
  ): Promise<unknown> {
    if (call === 'host.through') return this.#through(input as Asked, signal)
    if (call.startsWith('host.')) return this.#own(call, input as Asked)
    if (as && !this.#serving.has(as))
      refuse('forbidden', `${this.#principal.plugin} is not serving the caller it names`)
    const value = await this.#kernel.calls.from(this.#principal, call, input, signal, as)
    return isStream(value) ? this.#whole(value, signal) : value
  }

  /** A call that a contribution to one of the plugin's own points names. */
  async #through({ point, call, value: input }: Asked, signal?: AbortSignal): Promise<unknown> {
    const { calls, events } = this.#kernel
    const gives = (plugin: string) => point.startsWith(`${this.#principal.plugin}.`) && events.gives(point, plugin)
    const value = await calls.through(this.#principal, call, input, { gives, ...(signal && { signal }) })
    return isStream(value) ? this.#whole(value, signal) : value
  }

  /** Calls into the plugin. The plugin may act for the caller until the answer, or the stream it returns, ends. */
  readonly serve: Answer = async (call, input, context) => {
    this.#serving.add(context)
    let streaming = false
    try {
      const value = await this.#into(call, input, context)
      streaming = isStream(value)
      return isStream(value) ? this.#streamed(value, context) : value
    } finally {
      if (!streaming) this.#serving.delete(context)
    }
  }

  async *#streamed(events: AsyncIterable<unknown, unknown>, context: Context): AsyncIterable<unknown, unknown> {
    try {
      return yield* delegate(events)
    } finally {
      this.#serving.delete(context)
    }
  }

  /** A stream as another plugin reads it: when it ends with a journal position, the entries of that journal follow. */
  async *#whole(events: AsyncIterable<unknown, unknown>, signal?: AbortSignal): AsyncIterable<unknown> {
    const end = yield* delegate(events)
    if (isPosition(end)) yield* this.#kernel.journals.follow(end.journal, end.after, signal ?? KERNEL.signal)
  }

  async #own(call: string, asked: Asked): Promise<unknown> {
    const { plugin } = this.#principal
    const { calls, events, journals, files, log } = this.#kernel
    const journal = `${plugin}/${asked.journal}`
    switch (call) {
      case 'host.log':
        return log(plugin)[asked.level](asked.message, asked.fields)
      case 'host.serve':
        for (const own of asked.calls) this.#registered.served.set(own, this.serve)
        return
      case 'host.serves':
        return calls.has(asked.call)
      case 'host.emit':
        return events.emit(asked.event, asked.data)
      case 'host.on':
        return events.on(asked.event, plugin, this.#into)
      case 'host.contribute':
        return events.contribute(asked.point, plugin, this.#into)
      case 'host.collect':
        return events.collect(asked.point, plugin)
      case 'host.boot':
        return void this.#registered.steps.push({
          label: asked.label,
          run: () => this.#into('plugin.boot', { step: asked.step }, KERNEL),
        })
      case 'host.store.get':
        return this.#kernel.store(plugin).get(asked.key)
      case 'host.store.set':
        return this.#kernel.store(plugin).set(asked.key, asked.value)
      case 'host.store.delete':
        return this.#kernel.store(plugin).delete(asked.key)
      case 'host.store.all':
        return this.#kernel.store(plugin).all(asked.prefix)
      case 'host.store.texts':
        return this.#kernel.store(plugin).texts(asked.prefix)
      case 'host.journal.append':
        return journals.append(journal, asked.entries, { ...(asked.flush !== undefined && { flush: asked.flush }) })
      case 'host.journal.close':
        return journals.close(journal, asked.tail)
      case 'host.journal.interrupt':
        return journals.interrupt(journal, asked.tail)
      case 'host.journal.read':
        return journals.read(journal, asked.after, { ...(asked.damaged !== undefined && { damaged: asked.damaged }) })
      case 'host.journal.stat':
        return journals.stat(journal)
      case 'host.journal.rewrite':
        return journals.rewrite(journal, asked.entries)
      case 'host.journal.rename':
        return journals.rename(journal, `${plugin}/${asked.to}`)
      case 'host.journal.remove':
        return journals.remove(journal)
      case 'host.journal.list':
        return (await journals.list(`${plugin}/${asked.prefix}`)).map(name => name.slice(plugin.length + 1))
      case 'host.files.read':
        return files.under(plugin).read(asked.name)
      case 'host.files.write':
        return files.under(plugin).write(asked.name, asked.value)
      case 'host.files.remove':
        return files.under(plugin).remove(asked.name)
      case 'host.files.list':
        return files.under(plugin).list(asked.prefix)
    }
    return refuse('not-found', `a host has no ${call}`)
  }
}

/** `yield*` for any async iterable, with its return value; closes it when the consumer stops reading. */
async function* delegate(events: AsyncIterable<unknown, unknown>): AsyncGenerator<unknown, unknown> {
  return yield* events as AsyncGenerator<unknown, unknown>
}
