import { join } from 'node:path'
import { explain, type Handlers, type Host, refuse } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import { type LocalInput, type ServerAsConnection, validateLocal } from '../contract.js'
import type { ServerEntry } from '../entry.js'
import type { EndpointStore, ServerAccess } from '../store.js'
import { localModelCalls } from './calls.js'
import type { LocalModelCalls } from './contract.js'
import { configOf, CUSTOM, LOCAL_KIND, type LocalEntry, modelOfEntry, type ResolvedModel } from './entry.js'
import { Fitting } from './fit.js'
import { NotGguf } from './gguf.js'
import { exceedsMemory } from './local-server.js'
import { LocalServers, type LocalView, offeredModel } from './local-servers.js'
import { modelProgram, needModelProgram } from './model-program.js'
import { WeightsTransfers } from './transfers.js'
import { weightsName } from './weights.js'

/** Parts of the group that local models work with. */
export interface LocalModelsDeps {
  readonly host: Host
  readonly store: Pick<EndpointStore, 'local' | 'locals' | 'put' | 'drop'>
  /** Called with the id of an entry, or `local-model` for the fetch ahead of time. */
  readonly changed: (id: string) => void
}

/** A local model of which a server may be running. */
export interface LocalFound {
  readonly entry: LocalEntry
  readonly view: LocalView
  /** Its server, as the lists of models know it. */
  readonly server: ServerEntry
}

const NO_CARD =
  'gpu: expected off, found on: behind the wall a model server reaches no card yet, so models run on the processors '
  + 'of this machine; leave gpu out'

/** The models that this machine runs: what is stored of them, and their servers. */
export class LocalModels {
  readonly #deps: LocalModelsDeps
  readonly #fitting: Fitting
  readonly #servers: LocalServers
  readonly calls: Handlers<LocalModelCalls>

  constructor(deps: LocalModelsDeps) {
    const { host, changed } = deps
    const { place, files, log, signal } = host
    const folder = join(place.folder, 'models')
    const catalogue = place.models?.local
    const transfers = new WeightsTransfers(signal)
    this.#deps = deps
    this.#fitting = new Fitting({
      folder,
      files,
      log,
      signal,
      program: () => modelProgram(place),
      ...(catalogue !== undefined && { catalogue }),
    })
    this.calls = localModelCalls(host, { fitting: this.#fitting, folder, transfers, publish: changed })
    this.#servers = new LocalServers({
      folder,
      place,
      fitting: this.#fitting,
      transfers,
      stored: id => deps.store.local(id),
      log,
      changed,
      ports: ports =>
        void host
          .call('kernel.listeners.set', {
            name: 'local models',
            listeners: ports.map(port => ({ host: '127.0.0.1', port })),
            programs: true,
          })
          .catch(error => log.warn('the ports of local models could not be declared', { error: String(error) })),
      happened: (type, id, model, detail) => {
        if (detail !== undefined) log.warn('a local model failed', { id, model, detail })
        void record(host, {
          type,
          outcome: type === 'localmodel.held' ? 'ok' : 'error',
          extra: { id, model, ...(detail !== undefined && { detail }) },
        })
      },
    })
    host.stopping(() => this.#servers.close())
  }

  /** Every local model, with how its server stands. */
  async all(): Promise<LocalFound[]> {
    return Promise.all((await this.#deps.store.locals()).map(entry => this.#found(entry)))
  }

  async find(id: string): Promise<LocalFound | undefined> {
    const entry = await this.#deps.store.local(id)
    return entry && this.#found(entry)
  }

  /** What is sent with each request to the server of a local model. */
  async access({ id }: Pick<ServerEntry, 'id'>): Promise<ServerAccess> {
    const key = (await this.find(id))?.view.key
    return key === undefined
      ? { headers: {}, secrets: [], headerNames: [], problem: 'its server does not run' }
      : { headers: { authorization: `Bearer ${key}` }, secrets: [key], headerNames: [] }
  }

  /** Stores an entry and has its server run as it says; answers whether anything was stored. */
  async save(input: LocalInput): Promise<boolean> {
    const { store } = this.#deps
    const before = await store.local(input.id)
    const entry = await this.#entryOf(input, before)
    const changes = JSON.stringify(before) !== JSON.stringify(entry)
    if (entry.enabled) await this.#needProgram()
    if (changes) {
      await this.#needFit(entry)
      const { id, label } = entry
      await store.put({ id, kind: LOCAL_KIND, label, config: { ...configOf(entry) } })
    }
    await this.#servers.apply(entry.id)
    return changes
  }

  /** Removes an entry; resolves when its process is gone. */
  async remove(id: string): Promise<void> {
    await this.#deps.store.drop(id)
    await this.#servers.apply(id)
  }

  /** Brings what runs in line with what is stored. */
  async sync(): Promise<void> {
    await this.#servers.sync((await this.#deps.store.locals()).map(({ id }) => id))
  }

  async #found(entry: LocalEntry): Promise<LocalFound> {
    const view = await this.#servers.view(entry)
    const { id, label } = entry
    // What its server reported counts from the moment it was kept.
    const need = (await this.#heldNeed(view.need?.context ?? entry.context, view.model)) ?? view.need
    return {
      entry,
      view: { ...view, need },
      server: {
        id,
        label,
        protocol: 'openai',
        baseUrl: `http://127.0.0.1:${view.state.status === 'ready' ? view.state.port : 0}`,
        hasKey: true,
        hasHeaders: false,
        identity: `local ${view.model === undefined ? entry.model : weightsName(view.model)}`,
      },
    }
  }

  /** What a model needs, where that is known here. */
  async #heldNeed(context: number | undefined, model: ResolvedModel | undefined) {
    try {
      return model && (await this.#fitting.need(model, context, 'held'))
    } catch (error) {
      if (error instanceof NotGguf) return undefined
      throw error
    }
  }

  async #entryOf(input: LocalInput, before: LocalEntry | undefined): Promise<LocalEntry> {
    const { id, label, model, context, gpu, enabled = true } = input
    const kept = model === CUSTOM && before?.model === CUSTOM && input.url === undefined ? before : input
    const { url, sha256 } = kept
    if (gpu === 'on') refuse('unprocessable', NO_CARD)
    if (model === CUSTOM) {
      if (url === undefined)
        return refuse('unprocessable', 'url: expected the address of a file for the model custom, found none')
      const address = URL.parse(url)
      if (address?.username || address?.password)
        refuse('unprocessable', 'url: expected an address without user and password, found one with them')
      if (!address)
        refuse('invalid', `url: expected the address of a file with http or https, found ${JSON.stringify(url)}`, {
          errors: [{ path: 'url', expected: 'an address with http or https' }],
        })
    } else {
      const extra = url === undefined ? sha256 && 'sha256' : 'url'
      if (extra)
        refuse('unprocessable', `${extra}: expected none, found one: it belongs to the model custom, so leave it out`)
      offeredModel(model, await this.#fitting.models())
    }
    return {
      id,
      label: label?.trim() || before?.label || id,
      model,
      ...(url !== undefined && { url }),
      ...(sha256 !== undefined && { sha256 }),
      ...(context !== undefined && { context }),
      enabled,
    }
  }

  async #needProgram(): Promise<void> {
    const { program } = await needModelProgram(this.#deps.host.place)
    if (!(await this.#fitting.now()).serverReady)
      refuse(
        'missing-program',
        `expected a program that starts, found ${program}: run it with --version to see why, and install it again`,
      )
  }

  async #needFit(entry: LocalEntry): Promise<void> {
    const model = modelOfEntry(entry, await this.#fitting.models())!
    try {
      const need = await this.#fitting.need(model, entry.context)
      if (need && !need.fits)
        refuse('unprocessable', `model: expected one that fits, found ${model.name}: ${exceedsMemory(need)}`)
    } catch (error) {
      if (!(error instanceof NotGguf)) throw error
      refuse('unprocessable', `url: expected a model in the format GGUF, found a file that is none: ${error.message}`)
    }
  }
}

/** A local model as the config of a connection gives it. */
export const localIn = ({ id, config }: Pick<ServerAsConnection, 'id' | 'config'>): LocalInput => {
  const checked = validateLocal({ ...config, id, kind: 'local' })
  if (checked.success) return checked.data
  const errors = explain(checked.errors, '$input').map(error => ({ ...error, path: `config.${error.path}` }))
  const [first] = errors
  return refuse('invalid', `${first?.path}: expected ${first?.expected}`, { errors })
}
