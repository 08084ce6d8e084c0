import { Refusal, refuse, type Log, type Store } from '../../../sdk/index.js'
import { VAULTED } from '../../../sdk/vaulted.js'
import type { CapabilityFile } from './capability-file.js'
import type { ApplyFrame, CapabilityStatus, ShownConfig } from './contract.js'
import type { Entries, RecordedEntry } from './entries.js'
import type { KindHandler, OpenEntry } from './kinds.js'
import { masked } from './masking.js'
import type { Vault } from './vault.js'

/** What is to be connected, checked. */
export interface ApplyPlan {
  readonly entry: OpenEntry
  readonly handler: KindHandler
  /** The connection that is changed. */
  readonly before?: RecordedEntry
  /** Nothing is kept of it yet: when connecting fails, nothing stays. */
  readonly fresh: boolean
  /** Values to store. */
  readonly stored: { readonly [field: string]: string }
}

export interface ConnectingDeps {
  readonly file: CapabilityFile
  readonly entries: Entries
  readonly vault: Vault
  readonly store: Pick<Store, 'set' | 'delete'>
  readonly log: Log
  readonly signal: AbortSignal
}

/** Who connects hears of each step, and can stop it until it is recorded. */
export interface ConnectWatch {
  readonly report: (message: string) => void
  readonly stop: AbortSignal
}

/** Under which a start finds what a connection that is not in the file may have left. */
export const UNFINISHED = 'unfinished/'

const applyMs = (handler: KindHandler): number => handler.applyMs ?? 60_000

/** Splits given fields into those that are shown and the values of secrets; what the marker stands for is looked up. */
export const applyPlanOf = async (
  { vault }: Pick<ConnectingDeps, 'vault'>,
  { id, config }: { readonly id: string; readonly config: ShownConfig },
  handler: KindHandler,
  before: RecordedEntry | undefined,
): Promise<ApplyPlan> => {
  const fields = new Set(handler.secretFields(config))
  const shown: { [field: string]: string | number | boolean } = {}
  const secrets: { [field: string]: string } = {}
  const stored: { [field: string]: string } = {}
  for (const [field, value] of Object.entries(config)) {
    if (value === undefined || value === '') continue
    if (!fields.has(field)) {
      if (value === VAULTED)
        refuse('invalid', `config.${field}: expected a value, found ${VAULTED}, for it is no secret`)
      shown[field] = value
      continue
    }
    if (typeof value !== 'string') return refuse('invalid', `config.${field}: expected a text`)
    const most = handler.largestSecret ?? MOST_SECRET
    if (value.length > most)
      refuse('invalid', `config.${field}: expected at most ${most} characters, found ${value.length}`)
    if (value !== VAULTED) stored[field] = value
    secrets[field] = value === VAULTED ? await kept(vault, id, field, before) : value
  }
  for (const field of handler.keptSecrets ?? []) {
    if (before?.secrets.includes(field)) secrets[field] ??= await kept(vault, id, field, before)
    else if (await handler.claims?.(id)) await takeKept(vault, { id, field }, { secrets, stored })
  }
  const given: OpenEntry = { id, config: shown, secrets }
  await handler.check(given)
  const made = await handler.complete?.(given, before?.config)
  for (const [field, value] of Object.entries(made?.secrets ?? {})) if (secrets[field] !== value) stored[field] = value
  const entry: OpenEntry = { ...given, ...made }
  if (Object.keys(stored).length > 0) await vault.assertOpen()
  const fresh = !before && Object.keys(entry.secrets).every(field => field in stored)
  return { entry, handler, stored, fresh, ...(before && { before }) }
}

/** Takes the stored value of a field whose entry was removed by hand: it is not lost to another one. */
const takeKept = async (
  vault: Vault,
  { id, field }: { readonly id: string; readonly field: string },
  { secrets, stored }: { readonly [values in 'secrets' | 'stored']: { [field: string]: string } },
): Promise<void> => {
  const value = await vault.get(id, field)
  if (value === undefined) return
  if ((secrets[field] ?? value) !== value)
    refuse('conflict', `config.${field}: expected none, for ${id} has one, though its entry was removed by hand`)
  secrets[field] = value
  delete stored[field]
}

const MOST_SECRET = 65_536

const kept = async (vault: Vault, id: string, field: string, before: RecordedEntry | undefined): Promise<string> => {
  const value = before?.secrets.includes(field) ? await vault.get(id, field) : undefined
  return (
    value
    ?? refuse('unprocessable', `config.${field}: expected a value, found ${VAULTED}, and none is stored for ${id}`, {
      errors: [{ path: `config.${field}`, expected: 'a value' }],
    })
  )
}

/**
 * Refuses a second connection of a single kind, also while the first is being connected, and one whose required kinds
 * are not connected.
 */
export const assertPossible = (
  known: readonly Pick<RecordedEntry, 'id' | 'kind'>[],
  { kind, singleton, requires = [] }: Pick<KindHandler, 'kind' | 'singleton' | 'requires'>,
  begun: readonly Pick<RecordedEntry, 'id' | 'kind'>[],
): void => {
  const other = singleton && [...known, ...begun].find(each => each.kind === kind)
  if (other) refuse('conflict', `${other.id} is the connection of kind ${kind} already: there can be one only`)
  for (const needed of requires)
    if (!known.some(each => each.kind === needed))
      refuse('conflict', `a connection of kind ${kind} needs one of kind ${needed}: connect that first`)
}

/** What is being connected since before a connection began. */
export const begunBefore = (
  busy: ReadonlyMap<string, { readonly kind?: string }>,
  id: string,
): Pick<RecordedEntry, 'id' | 'kind'>[] => {
  const all = [...busy].map(([other, { kind = '' }]) => ({ id: other, kind }))
  return all.slice(
    0,
    all.findIndex(each => each.id === id),
  )
}

/** Connects for real, then stores what is secret, then records it; until that, everything is as it was. */
export const connect = async (
  deps: ConnectingDeps,
  plan: ApplyPlan,
  { report, stop }: ConnectWatch,
): Promise<CapabilityStatus> => {
  const { entry, handler, fresh } = plan
  const { id } = entry
  if (fresh) await deps.store.set(UNFINISHED + id, { kind: handler.kind })
  try {
    const ms = applyMs(handler)
    const over = AbortSignal.any([deps.signal, stop, ...(ms === Infinity ? [] : [AbortSignal.timeout(ms)])])
    const status = await handler.apply(entry, message => report(masked(message, entry.secrets)), over)
    stop.throwIfAborted()
    await keep(deps, plan)
    await handler.recorded?.(entry)
    return status
  } catch (error) {
    if (fresh) {
      await handler.forget?.(id).catch(failed => deps.log.warn('removing files failed', { id, error: String(failed) }))
      await deps.store.delete(UNFINISHED + id)
    }
    if (stop.aborted) throw new Refusal('dependency', `connecting ${id} was stopped, and nothing was kept`)
    throw sentence(error, plan)
  }
}

const keep = async ({ file, entries, vault, store }: ConnectingDeps, plan: ApplyPlan): Promise<void> => {
  const { entry, handler, before, stored } = plan
  const { id, config, secrets } = entry
  const undo: (() => Promise<void>)[] = []
  try {
    for (const [field, value] of Object.entries(stored)) {
      const old = before?.secrets.includes(field) ? await vault.get(id, field) : undefined
      undo.push(() => (old === undefined ? vault.drop(id, field) : vault.put(id, field, old)))
      await vault.put(id, field, value)
    }
    await entries.allow(id, handler.kind, config, handler.mark?.(config))
    const marked = Object.fromEntries(Object.keys(secrets).map(field => [field, VAULTED]))
    await file.change(id, now => ({ ...now, kind: handler.kind, config: { ...config, ...marked } }))
  } catch (error) {
    for (const step of undo.reverse()) await step()
    if (!before) await entries.disallow(id)
    throw error
  }
  for (const field of before?.secrets ?? []) if (secrets[field] === undefined) await vault.drop(id, field)
  await store.delete(UNFINISHED + id)
}

/** A failure as its caller should see it: without secrets, and as a refusal where the other side is at fault. */
const sentence = (error: unknown, { entry: { secrets }, handler }: ApplyPlan): unknown => {
  if (error instanceof Refusal) return new Refusal(error.reason, masked(error.message, secrets), error.detail)
  if (error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError'))
    return new Refusal('dependency', `it did not answer within ${applyMs(handler) / 1000} s, and nothing was kept`)
  return error
}

/** The steps of a connection as a stream, which may be left without stopping them. */
export class ApplySteps {
  readonly #frames: ApplyFrame[] = []
  #wake: (() => void) | undefined
  #over = false
  #error: unknown

  readonly report = (message: string): void => this.#put({ kind: 'log', message })

  finish(id: string, status: CapabilityStatus): void {
    this.#put({ kind: 'status', status })
    this.#put({ kind: 'result', ok: true, id, status })
    this.#end()
  }

  fail(error: unknown): void {
    this.#error = error
    this.#end()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ApplyFrame, void> {
    for (let next = 0; ;) {
      while (next < this.#frames.length) yield this.#frames[next++]!
      if (this.#over) break
      await new Promise<void>(resolve => (this.#wake = resolve))
    }
    if (this.#error !== undefined) throw this.#error
  }

  #put(frame: ApplyFrame): void {
    // A server that reports on and on must not fill the memory.
    if (this.#over || (frame.kind === 'log' && this.#frames.length > 500)) return
    this.#frames.push(frame)
    this.#wake?.()
  }

  #end(): void {
    this.#over = true
    this.#wake?.()
  }
}
