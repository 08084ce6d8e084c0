import { isIdentified, isRoute, isWatch, type Context, type Contract } from '../sdk/contract.js'
import type { Answer } from '../sdk/host.js'
import { Refusal, refuse } from '../sdk/refusal.js'
import type { Caller } from '../sdk/types.js'
import { isStream } from '../sdk/wire.js'

/** Starts the group that serves a call; `by` is the plugin that makes it. */
export type StartGroup = (by?: string) => Promise<void>

interface Entry {
  readonly plugin: string
  /** Absent while its group is not started. */
  answer?: Answer
  readonly start?: StartGroup
}

/** A plugin as a caller: its name, and the calls its manifest lets it make. */
export interface Principal {
  readonly plugin: string
  readonly caller: Caller
  readonly needed: ReadonlySet<string>
  readonly late: ReadonlySet<string>
}

/** Every call with the plugin that serves it. All calls between plugins pass here, which checks their permissions. */
export class Calls {
  readonly #entries = new Map<string, Entry>()
  readonly #contracts = new Map<string, Contract>()

  /** @param checked Validate every reply against its contract; on in development and tests. */
  constructor(readonly checked: boolean) {}

  /** Registers a call that the kernel serves itself. */
  add(call: string, plugin: string, answer: Answer): void {
    const taken = this.#entries.get(call)
    if (taken) throw new Error(`${plugin} and ${taken.plugin} both serve ${call}`)
    this.#entries.set(call, { plugin, answer })
  }

  /** Sets the contract that a plugin's replies are validated against. */
  describe(plugin: string, contract: Contract): void {
    this.#contracts.set(plugin, contract)
  }

  /** Registers the calls of a group that has not started; the first of them starts it. */
  declare(plugin: string, calls: readonly string[], start: StartGroup): void {
    for (const call of calls) {
      const taken = this.#entries.get(call)
      if (taken) throw new Error(`${plugin} and ${taken.plugin} both serve ${call}`)
      this.#entries.set(call, { plugin, start })
    }
  }

  /** Sets the handlers of a group that has started. */
  open(plugin: string, served: ReadonlyMap<string, Answer>): void {
    for (const [call, entry] of this.#entries) if (entry.plugin === plugin) entry.answer = served.get(call)
  }

  /** Removes the handlers of a group; its calls stay declared. */
  close(plugin: string): void {
    for (const entry of this.#entries.values()) if (entry.plugin === plugin) delete entry.answer
  }

  /** The plugin that serves a call. */
  pluginOf(call: string): string | undefined {
    return this.#entries.get(call)?.plugin
  }

  has(call: string): boolean {
    return this.#entries.has(call)
  }

  /**
   * Makes a call for a plugin; refuses one that its manifest does not declare.
   *
   * @param as The context that the plugin is serving, when it acts for that caller.
   */
  async from(principal: Principal, call: string, input: unknown, signal = NEVER, as?: Context): Promise<unknown> {
    const late = principal.late.has(call)
    if (!late && !principal.needed.has(call))
      refuse('forbidden', `${principal.plugin} does not declare ${call} in its permissions`)
    if (late && !this.has(call)) refuse('unavailable', `${call} is not served here: its group is not loaded`)
    const context = { caller: as?.caller ?? principal.caller, signal, trusted: true }
    return this.answer(call, input, context, principal.plugin)
  }

  /** Makes a call without a route to one of the groups that `gives` accepts; refuses every other call. */
  async through(
    { plugin, caller }: Principal,
    call: string,
    input: unknown,
    { gives, signal = NEVER }: { gives: (plugin: string) => boolean; signal?: AbortSignal },
  ): Promise<unknown> {
    const server = this.#entries.get(call)?.plugin
    if (server === undefined || isRoute(call) || !gives(server))
      refuse('forbidden', `${plugin} may not make ${call}: no group that adds to this point of ${plugin} serves it`)
    return this.answer(call, input, { caller, signal, trusted: true }, plugin)
  }

  /** Answers a call, after starting its group if needed; `by` is the plugin that makes the call. */
  answer(call: string, input: unknown, context: Context, by?: string): Promise<unknown> {
    const answer = this.checked ? undefined : this.#entries.get(call)?.answer
    return answer ? answer(call, input, context) : this.#answer(call, input, context, by)
  }

  async #answer(call: string, input: unknown, context: Context, by?: string): Promise<unknown> {
    const entry = this.#entries.get(call) ?? refuse('not-found', `nothing serves ${call}`)
    if (!entry.answer) await entry.start?.(by)
    const answer = entry.answer ?? refuse('unavailable', `${entry.plugin} is not running`)
    const value = await answer(call, input, context)
    if (!this.checked) return value
    return isStream(value) ? this.#checkedStream(entry.plugin, call, value) : this.#fits(entry.plugin, call, value)
  }

  async *#checkedStream(
    plugin: string,
    call: string,
    events: AsyncIterable<unknown, unknown>,
  ): AsyncIterable<unknown, unknown> {
    const iterator = events[Symbol.asyncIterator]()
    try {
      for (;;) {
        const { value, done } = await iterator.next()
        if (done) return value
        yield isWatch(value)
          ? value
          : isIdentified(value)
            ? { ...value, event: this.#fits(plugin, call, value.event) }
            : this.#fits(plugin, call, value)
      }
    } finally {
      await iterator.return?.()
    }
  }

  #fits(plugin: string, call: string, output: unknown): unknown {
    const contract = this.#contracts.get(plugin)
    const isBytes = typeof output === 'object' && output !== null && 'content-type' in output
    if (!contract || isBytes) return output
    const result = contract.reply()({ call, output })
    if (result.success) return output
    const [first] = result.errors
    const found = JSON.stringify(first?.value)?.slice(0, 200)
    throw new Refusal('failed', 'the sandbox failed to answer; its log says why', {
      cause: new Error(`${call} answered ${found} at ${first?.path}, expected ${first?.expected}`),
    })
  }
}

const NEVER = new AbortController().signal
