import { refuse, type Context, type Host, type Ok } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { record } from '../../../sdk/node/record/record.js'
import type { CapabilityGiven, CapabilityRecord } from '../contract.js'
import type { OfferedCards } from '../cards/offered-cards.js'
import { VAULTED } from '../../../sdk/vaulted.js'
import { CapabilityFile, RESERVED } from './capability-file.js'
import {
  connect,
  applyPlanOf,
  ApplySteps,
  UNFINISHED,
  type ApplyPlan,
  type ConnectingDeps,
  type ConnectWatch,
  assertPossible,
  begunBefore,
} from './connecting.js'
import type { ApplyFrame, Capability, CapabilityStatus, CapabilitySummary, ShownConfig } from './contract.js'
import { Entries, type RecordedEntry } from './entries.js'
import type { ForwardedKind } from './forwards.js'
import type { KindEntry } from '../kinds/contract.js'
import type { Kinds, KnownKinds } from '../kinds/kinds.js'
import type { KindHandler } from './kinds.js'
import { masked } from './masking.js'
import { Statuses } from './statuses.js'
import { Vault } from './vault.js'

const ASK_MS = 2000
/** Kinds that run code with powers of their own, or spend money. */
const OWNERS = new Set(['extension', 'wallet'])
const UNSERVED = 'nothing that runs here serves this kind'

type Deps = Pick<Host, 'call' | 'serves' | 'log' | 'store' | 'signal' | 'emit' | 'place'>

/** The personas with the connections that each names. */
const personasNaming = async (
  host: Pick<Host, 'call' | 'serves'>,
): Promise<{ readonly id: string; readonly capabilities: readonly string[] }[]> =>
  (await host.serves('personas.naming')) ? (await host.call('personas.naming')).personas : []

/** A change of a connection that is under way; one with `stop` may be stopped. */
interface Change {
  readonly over: Promise<void>
  readonly stop?: AbortController
  /** The kind that is being connected. */
  readonly kind?: string
}

/** Everything that is connected, and what may be done with it. */
export class Capabilities {
  readonly entries: Entries
  readonly vault: Vault
  readonly #host: Deps
  readonly #kinds: Kinds
  readonly #cards: OfferedCards
  readonly #file: CapabilityFile
  readonly #busy = new Map<string, Change>()
  readonly #puts = new KeyedMutex()
  readonly #statuses = new Statuses(id => this.#publish(id))

  constructor(host: Deps, kinds: Kinds, cards: OfferedCards) {
    const { log, store, place } = host
    this.#host = host
    this.#kinds = kinds
    this.vault = new Vault(host)
    this.#file = new CapabilityFile(place.workspace)
    this.#cards = cards
    this.entries = new Entries({ file: this.#file, vault: this.vault, store, kinds, cards, log })
  }

  get #deps(): ConnectingDeps {
    const { store, log, signal } = this.#host
    return { file: this.#file, entries: this.entries, vault: this.vault, store, log, signal }
  }

  async list(): Promise<CapabilitySummary[]> {
    const entries = await this.entries.all()
    const naming = await personasNaming(this.#host)
    return Promise.all(
      entries.map(async entry => {
        const { id, kind, label, config, secrets, plain, handler } = entry
        const status = await this.#statuses.get(id, thorough => this.#probe(entry, thorough), ASK_MS)
        const tools = handler?.tools?.(id)
        const card = handler?.card?.(config)
        return {
          id,
          kind,
          label,
          ...(card !== undefined && { card }),
          status,
          config: { ...config },
          secrets: [...secrets, ...plain],
          ...(tools !== undefined && { tools }),
          usedBy: naming.filter(({ capabilities }) => capabilities.includes(id)).map(persona => persona.id),
        }
      }),
    )
  }

  async status(id: string): Promise<CapabilityStatus> {
    const entry = await this.entries.get(id)
    return this.#statuses.now(id, thorough => this.#probe(entry, thorough), ASK_MS)
  }

  /** A connection's state changed by itself, such as with a server that crashed. */
  changed(id: string, status: CapabilityStatus): void {
    this.#statuses.set(id, status)
  }

  async #probe(entry: RecordedEntry, thorough: boolean): Promise<CapabilityStatus> {
    const { id, handler, kind } = entry
    const inactive = (detail: string): CapabilityStatus => ({ state: 'inactive', detail, checkedAt: Date.now() })
    try {
      const forward = handler ? undefined : (await this.#kinds.of([kind])).forwards.get(kind)
      if (forward) return await forward.status(id)
      if (!handler) return inactive(UNSERVED)
      const opened = await this.entries.open(entry)
      if (opened.problem) return opened.problem
      const status = await handler.probe(opened.entry, this.#host.signal, thorough)
      return status.detail === undefined ? status : { ...status, detail: masked(status.detail, opened.entry.secrets) }
    } catch (error) {
      this.#host.log.warn('asking a connection for its state failed', { id, error: String(error) })
      return { state: 'error', detail: 'asking it failed; the log says why', checkedAt: Date.now() }
    }
  }

  /** Connects, or changes a connection; what is wrong with the request is refused before the first step. */
  async add(given: Capability, { caller }: Pick<Context, 'caller'>): Promise<AsyncIterable<ApplyFrame>> {
    const { id, kind } = given
    if (RESERVED.has(id)) refuse('invalid', `id: expected no reserved word, found ${id}`)
    assertMayChange(kind, caller)
    if (this.#cards.isBrought(kind, given.config as ShownConfig)) await this.#cards.refresh()
    const kinds = await this.#kinds.of([kind])
    const forward = kinds.forwards.get(kind)
    const handler = kinds.handlers.get(kind)
    if (!handler && !forward) refuse('unprocessable', unserved(kind, kinds))
    const stop = new AbortController()
    const release = this.#take(id, { stop, kind })
    try {
      await this.#kinds.assertUnclaimed(id, kind)
      await this.entries.takeIn(id)
      const before = await this.entries.find(id)
      if (before && before.kind !== kind) refuse('conflict', `${id} is a connection of kind ${before.kind} already`)
      const begun = begunBefore(this.#busy, id)
      if (!before && handler) assertPossible(await this.entries.all(), handler, begun)
      const steps = new ApplySteps()
      const config = given.config as ShownConfig
      const work = forward
        ? this.#forwarded(forward, { id, kind, config }, steps)
        : this.#connected(await applyPlanOf(this.#deps, { id, config }, handler!, before), caller.actor, {
            report: steps.report,
            stop: stop.signal,
          })
      void work.finally(release).then(
        status => steps.finish(id, status),
        error => steps.fail(error),
      )
      return steps
    } catch (error) {
      release()
      throw error
    }
  }

  async #forwarded(
    forward: ForwardedKind,
    given: { id: string; kind: string; config: ShownConfig },
    steps: ApplySteps,
  ): Promise<CapabilityStatus> {
    const { status, log } = await forward.apply(given)
    log.forEach(steps.report)
    return status
  }

  async #connected(plan: ApplyPlan, actor: string, watch: ConnectWatch): Promise<CapabilityStatus> {
    const { before, handler, entry } = plan
    const { id } = entry
    try {
      const status = await connect(this.#deps, plan, watch)
      this.#statuses.forget(id)
      this.#statuses.set(id, status)
      this.#connectedNow(id, handler.kind)
      await this.#record(before ? 'capability.changed' : 'capability.connected', { id, kind: handler.kind }, actor)
      return status
    } catch (error) {
      await this.#record('capability.failed', { id, kind: handler.kind }, actor, (error as Error).message)
      throw error
    }
  }

  async remove(id: string, { caller }: Pick<Context, 'caller'>): Promise<Ok> {
    assertMayChange((await this.entries.find(id))?.kind, caller)
    const change = this.#busy.get(id)
    if (change?.stop) {
      change.stop.abort()
      await change.over
      if (!(await this.entries.find(id))) return { ok: true }
    }
    const release = this.#take(id)
    try {
      const entry = await this.entries.get(id)
      await this.#removed(entry)
      await this.#record('capability.removed', { id, kind: entry.kind }, caller.actor)
      return { ok: true }
    } finally {
      release()
    }
  }

  async #removed({ id, kind, secrets, handler }: RecordedEntry): Promise<void> {
    await this.#kinds.assertUnclaimed(id, kind)
    if (secrets.length > 0) await this.vault.assertOpen()
    await handler?.release?.(id)
    await this.#host.store.set(UNFINISHED + id, { kind })
    await this.#file.change(id, () => undefined)
    await this.#clean(id, handler)
    this.#statuses.forget(id)
    this.#host.emit('capability.removed', { id, kind })
    this.#publish(id)
  }

  /** Removes what a connection that is in no file any more left elsewhere. */
  async #clean(id: string, handler?: KindHandler): Promise<void> {
    await handler?.forget?.(id)
    await this.vault.drop(id)
    await this.entries.disallow(id)
    await this.#host.store.delete(UNFINISHED + id)
  }

  async rename(id: string, to: string, { caller }: Pick<Context, 'caller'>): Promise<Ok> {
    if (RESERVED.has(to)) refuse('conflict', `${to} is a reserved word: choose another id`)
    const releases = [this.#take(id)]
    try {
      if (id !== to) releases.push(this.#take(to))
      const { kind } = await this.entries.get(id)
      assertMayChange(kind, caller)
      await this.#kinds.assertUnclaimed(id, kind)
      await this.entries.takeIn(id)
      const { secrets, handler } = await this.entries.get(id)
      if (id === to) return { ok: true }
      await this.#kinds.assertUnclaimed(to)
      if (await this.entries.find(to)) refuse('conflict', `there is a connection ${to} already`)
      if (await handler?.busy?.(id)) refuse('conflict', `a turn is using ${id}: wait until its call is over`)
      if (secrets.length > 0) await this.vault.assertOpen()
      await this.#host.store.set(UNFINISHED + id, { kind, to })
      try {
        await this.#carry(id, to, handler)
        await this.#file.rename(id, to)
      } catch (error) {
        await this.#carry(to, id, handler)
        await this.#host.store.delete(UNFINISHED + id)
        throw error
      }
      await this.entries.repoint(id, to)
      await this.entries.disallow(id)
      await this.#host.store.delete(UNFINISHED + id)
      this.#statuses.forget(id)
      this.#host.emit('capability.removed', { id, kind })
      this.#publish(id)
      this.#connectedNow(to, kind)
      await this.#record('capability.renamed', { id: to, kind, before: id }, caller.actor)
      return { ok: true }
    } finally {
      releases.forEach(release => release())
    }
  }

  async #carry(id: string, to: string, handler?: KindHandler): Promise<void> {
    await this.entries.carry(id, to)
    await this.vault.move(id, to)
    await handler?.rename?.(id, to)
    if (await this.#host.serves('personas.repoint')) await this.#host.call('personas.repoint', { from: id, to })
  }

  async setSecret(
    { id, value, field }: { id: string; value: string; field?: string },
    { caller }: Pick<Context, 'caller'>,
  ): Promise<Ok> {
    const stop = new AbortController()
    const release = this.#take(id, { stop })
    try {
      const { kind } = await this.entries.get(id)
      assertMayChange(kind, caller)
      await this.#kinds.assertUnclaimed(id, kind)
      await this.entries.takeIn(id)
      const before = await this.entries.get(id)
      const { handler } = before
      if (!handler) return refuse('conflict', `${id} is of kind ${kind}: change it with the calls of that kind`)
      const { entry, problem } = await this.entries.open(before)
      const fields = handler.secretFields(before.config)
      if (fields.length === 0) refuse('conflict', `${id} holds no secret`)
      const name = field ?? handler.mainSecret(before.config)
      if (name === undefined || !fields.includes(name))
        return refuse('invalid', `field: expected one of ${fields.join(', ')}, found ${name ?? 'nothing'}`)
      const others = before.secrets.filter(one => one !== name)
      if (problem && others.some(one => entry.secrets[one] === undefined)) refuse('conflict', problem.detail!)
      const kept = Object.fromEntries(others.map(one => [one, VAULTED]))
      const config = { ...before.config, ...kept, [name]: value }
      const plan = await applyPlanOf(this.#deps, { id, config }, handler, before)
      const status = await connect(this.#deps, plan, { report: () => {}, stop: stop.signal })
      this.#statuses.set(id, status)
      this.#connectedNow(id, kind)
      await this.#record('capability.secret', { id, kind, field: name }, caller.actor)
      return { ok: true }
    } finally {
      release()
    }
  }

  /** A connection of a kind with its values. */
  async opened(id: string, kind: string): Promise<KindEntry> {
    const found = await this.entries.get(id)
    if (found.kind !== kind) refuse('not-found', `there is no connection ${id} of kind ${kind}`)
    const { entry, problem } = await this.entries.open(found)
    if (problem && found.secrets.length > 0) await this.vault.assertOpen()
    if (problem) refuse('unprocessable', `${id}: ${problem.detail}`)
    return { id, config: { ...entry.config }, secrets: { ...entry.secrets } }
  }

  /** Stores a connection of a kind that another group serves. */
  async put({ id, kind, label, config, secrets = {} }: CapabilityGiven): Promise<CapabilityRecord> {
    if ((await this.#kinds.of([kind])).handlers.has(kind))
      refuse('conflict', `connections of kind ${kind} are made with POST /capabilities`)
    if (RESERVED.has(id)) refuse('invalid', `id: expected no reserved word, found ${id}`)
    return this.#puts.with(id, async () => {
      await this.#kinds.assertUnclaimed(id)
      const before = await this.entries.find(id)
      if (before && before.kind !== kind) refuse('conflict', `${id} is a connection of kind ${before.kind} already`)
      const given = Object.entries(secrets).filter(([, value]) => value !== VAULTED)
      if (given.some(([, value]) => value !== '')) await this.vault.assertOpen()
      if (!before) await this.#host.store.set(UNFINISHED + id, { kind })
      const names = new Set(before?.secrets)
      for (const [field, value] of given) {
        if (value === '') names.delete(field)
        else {
          await this.vault.put(id, field, value)
          names.add(field)
        }
      }
      const marked = Object.fromEntries([...names].map(field => [field, VAULTED]))
      await this.#file.change(id, () => ({
        kind,
        ...(label !== undefined && { label }),
        config: { ...config, ...marked },
      }))
      await this.entries.allow(id, kind, config)
      for (const [field, value] of given) if (value === '') await this.vault.drop(id, field)
      await this.#host.store.delete(UNFINISHED + id)
      this.#statuses.forget(id)
      this.#connectedNow(id, kind)
      return this.#recordOf(await this.entries.get(id))
    })
  }

  /** Removes a connection of a kind that another group serves; one that is gone is removed. */
  async drop(id: string): Promise<Ok> {
    const entry = await this.entries.find(id)
    if (entry?.handler) refuse('conflict', `${id} is of kind ${entry.kind}: it is removed with DELETE /capabilities`)
    if (entry) await this.#removed(entry)
    return { ok: true }
  }

  /** The connections in force: what came with the code counts as switched off; with `waiting` all saved ones. */
  async records({ kind, waiting = false }: { kind?: string; waiting?: boolean }): Promise<CapabilityRecord[]> {
    const all = (await this.entries.all()).filter(entry => kind === undefined || entry.kind === kind)
    const counts = await Promise.all(
      all.map(entry => (waiting ? this.entries.wasSaved(entry) : this.entries.isAccepted(entry))),
    )
    return all.filter((_, at) => counts[at]).map(entry => this.#recordOf(entry))
  }

  #recordOf({ id, kind, label, config, secrets, handler }: RecordedEntry): CapabilityRecord {
    const card = handler?.card?.(config)
    return {
      ...{ id, kind, label, config: { ...config }, secrets: [...secrets] },
      ...(card !== undefined && { card }),
      ...(this.#cards.isBrought(kind, config) && { brought: true }),
    }
  }

  /** Finishes, or takes back, what the end of the daemon cut off. */
  async recover(): Promise<void> {
    await this.#file.sweep()
    const { entries } = await this.#file.read()
    for (const [key, left] of await this.#host.store.all<{ kind: string; to?: string }>(UNFINISHED)) {
      const id = key.slice(UNFINISHED.length)
      try {
        const handler = (await this.#kinds.of([left.kind])).handlers.get(left.kind)
        if (left.to !== undefined && entries.has(id)) await this.#carry(left.to, id, handler)
        if (left.to !== undefined && !entries.has(id)) await this.entries.repoint(id, left.to)
        if (left.to !== undefined) await this.entries.disallow(entries.has(id) ? left.to : id)
        else if (!entries.has(id)) await this.#clean(id, handler)
        await this.#host.store.delete(key)
      } catch (error) {
        this.#host.log.warn('removing what an interrupted change left failed', { id, error: String(error) })
      }
    }
  }

  /** One change of a connection at a time: a second one is refused. */
  #take(id: string, change: Omit<Change, 'over'> = {}): () => void {
    if (this.#busy.has(id)) refuse('conflict', `${id} is being connected or changed: wait until that is done`)
    const { promise: over, resolve } = Promise.withResolvers<void>()
    this.#busy.set(id, { over, ...change })
    return () => {
      this.#busy.delete(id)
      resolve()
    }
  }

  #connectedNow(id: string, kind: string): void {
    this.#host.emit('capability.connected', { id, kind })
    this.#publish(id)
  }

  #publish(id: string): void {
    this.#host
      .call('kernel.events.publish', { domain: 'capabilities', key: id })
      .catch(error => this.#host.log.warn('publishing a change of connections failed', { error: String(error) }))
  }

  #record(type: string, extra: { [field: string]: string }, actor: string, error?: string): Promise<void> {
    return record(this.#host, {
      type,
      actor,
      outcome: error === undefined ? 'ok' : 'error',
      ...(error !== undefined && { error }),
      extra,
    })
  }
}

const assertMayChange = (kind: string | undefined, { kind: who, role }: Context['caller']): void => {
  if (kind !== undefined && OWNERS.has(kind) && who !== 'plugin' && role !== 'owner')
    refuse('forbidden', `connections of kind ${kind} are made, changed and removed by the owner alone`)
}

const unserved = (kind: string, { handlers, forwards }: KnownKinds): string => {
  const there = [...handlers.keys(), ...forwards.keys()].sort()
  return `kind: expected one that can be connected here (${there.join(', ')}), found ${kind}`
}
