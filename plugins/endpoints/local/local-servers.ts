import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Log, type Place, refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { RotatingFile } from '../../../sdk/node/logs/rotating-file.js'
import type { CatalogueModel } from './contract.js'
import { type LocalEntry, type ResolvedModel, modelOfEntry, runsTheSame } from './entry.js'
import type { Fitting, ModelNeed } from './fit.js'
import { LocalServer, type LocalState, SERVER_LIMITS } from './local-server.js'
import { modelServerCommand } from './server-command.js'
import { TransferFailed } from './transfer.js'
import type { WeightsTransfers } from './transfers.js'
import { isHeld, weightsPath } from './weights.js'

/** A fact about a local model for the activity record. */
export type LocalEvent = 'localmodel.held' | 'localmodel.failed' | 'localmodel.crashed'

/** Parts of the group that local models work with. */
export interface LocalServersDeps {
  readonly folder: string
  readonly place: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants' | 'models' | 'logs'>
  readonly fitting: Pick<Fitting, 'models' | 'need' | 'learn'>
  readonly transfers: Pick<WeightsTransfers, 'fetch'>
  /** What is stored of an entry now. */
  readonly stored: (id: string) => Promise<LocalEntry | undefined>
  readonly log: Pick<Log, 'warn'>
  readonly changed: (id: string) => void
  /** Called with the ports of all servers when they changed. */
  readonly ports: (ports: number[]) => void
  readonly happened: (type: LocalEvent, id: string, model: string, detail?: string) => void
}

/** A local model, and how its server stands. */
export interface LocalView {
  readonly state: LocalState
  readonly model: ResolvedModel | undefined
  readonly need: ModelNeed | undefined
  /** Set while it is ready. */
  readonly key: string | undefined
}

interface Running {
  readonly entry: LocalEntry
  readonly model: ResolvedModel
  readonly server: LocalServer
  readonly log: RotatingFile
}

const PROGRESS_EVERY = 1000
const STOPPED: LocalState = { status: 'stopped' }

/** The log of a local model, by its name in `GET /logs`. */
export const localLog = (id: string): string => `terminals/model-${id}.log`

/** Runs one server for each local model that is enabled. */
export class LocalServers {
  readonly #deps: LocalServersDeps
  readonly #running = new Map<string, Running>()
  readonly #failed = new Map<string, string>()
  readonly #ports = new Set<number>()
  readonly #locks = new KeyedMutex()
  #toldAt = 0
  #closed = false

  constructor(deps: LocalServersDeps) {
    this.#deps = deps
  }

  /** How an entry stands. */
  async view(entry: LocalEntry): Promise<LocalView> {
    const running = this.#running.get(entry.id)
    if (running) {
      const { server, model } = running
      const { state, need, key } = server
      return { state, model, need, key: state.status === 'ready' ? key : undefined }
    }
    const model = modelOfEntry(entry, await this.#deps.fitting.models())
    const detail = entry.enabled ? this.#failed.get(entry.id) : undefined
    return {
      state: detail === undefined ? STOPPED : { status: 'error', detail, over: true },
      model,
      need: undefined,
      key: undefined,
    }
  }

  /** Starts, restarts or ends the server of an entry, as is stored of it; one that runs the same goes on. */
  async apply(id: string): Promise<void> {
    await this.#locks.with(id, async () => {
      const entry = await this.#deps.stored(id)
      const running = this.#running.get(id)
      const over = running?.server.state.status === 'error' && running.server.state.over
      if (running && entry?.enabled && !over && runsTheSame(running.entry, entry)) return
      await this.#end(id)
      if (entry?.enabled) await this.#start(entry)
      this.#deps.changed(id)
    })
  }

  /** Brings what runs in line with what is stored; `ids` are those of all entries. */
  async sync(ids: readonly string[]): Promise<void> {
    await Promise.all([...new Set([...this.#running.keys(), ...ids])].map(id => this.apply(id)))
  }

  /** Ends all servers. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#running.keys()].map(id => this.#locks.with(id, () => this.#end(id))))
  }

  async #end(id: string): Promise<void> {
    this.#failed.delete(id)
    const running = this.#running.get(id)
    if (!running) return
    this.#running.delete(id)
    await running.server.end()
    await running.log.close()
  }

  async #start(entry: LocalEntry): Promise<void> {
    const { id } = entry
    const { folder, place, fitting, transfers, log, happened } = this.#deps
    const model = modelOfEntry(entry, await fitting.models())
    if (!model) {
      this.#failed.set(id, `its model ${entry.model} is no longer offered: choose another, or name its file as custom`)
      return
    }
    if (this.#closed) return
    const file = new RotatingFile(join(place.logs, localLog(id)))
    let port: number | undefined
    const server = new LocalServer({
      limits: SERVER_LIMITS,
      model,
      fetch: async (signal, received) => {
        const path = weightsPath(folder, model)
        if (await isHeld(folder, model)) return path
        try {
          const { url, sha256, sizeBytes } = model
          const known = { ...(sha256 !== undefined && { sha256 }), ...(sizeBytes !== undefined && { size: sizeBytes }) }
          await transfers.fetch({ url, ...known, path, signal, received })
        } catch (error) {
          if (error instanceof TransferFailed && !signal.aborted)
            happened('localmodel.failed', id, model.name, error.message)
          throw error
        }
        happened('localmodel.held', id, model.name)
        return path
      },
      need: () => fitting.need(model, entry.context),
      port: async () => {
        this.#freed(port)
        port = await this.#freePort()
        return port
      },
      command: order => modelServerCommand(place, order),
      printed: lines => file.write(lines),
      changed: () => {
        const { state } = server
        if (state.status !== 'loading' && state.status !== 'ready') this.#freed(port)
        if (state.status === 'downloading' && !this.#due()) return
        this.#deps.changed(id)
      },
      crashed: detail => happened('localmodel.crashed', id, model.name, detail),
      learned: (context, bytes) =>
        void fitting
          .learn(model, context, bytes)
          .catch(error => log.warn('the sizes of a model could not be kept', { error: String(error) })),
    })
    this.#running.set(id, { entry, model, server, log: file })
  }

  /** Whether progress is due to be told. */
  #due(): boolean {
    if (Date.now() - this.#toldAt < PROGRESS_EVERY) return false
    this.#toldAt = Date.now()
    return true
  }

  /** A loopback port that nobody listens on, also none of the other servers that have yet to listen. */
  async #freePort(): Promise<number> {
    for (let tried = 0; tried < 20; tried++) {
      const probe = createServer().listen(0, '127.0.0.1')
      await once(probe, 'listening')
      const { port } = probe.address() as AddressInfo
      probe.close()
      if (this.#ports.has(port)) continue
      this.#ports.add(port)
      this.#deps.ports([...this.#ports])
      return port
    }
    return refuse('unavailable', 'no port of this machine is free', { retryAfter: 5 })
  }

  #freed(port: number | undefined): void {
    if (port !== undefined && this.#ports.delete(port)) this.#deps.ports([...this.#ports])
  }
}

/** A model of the catalogue by its name; refuses with those that there are. */
export const offeredModel = (name: string, models: readonly CatalogueModel[]): CatalogueModel => {
  const names = models.map(({ model }) => model)
  return (
    models.find(({ model }) => model === name)
    ?? refuse(
      'unprocessable',
      `model: expected ${names.length > 0 ? `one of ${names.join(', ')} or ` : ''}custom with the url of a file, found `
        + JSON.stringify(name.slice(0, 80)),
    )
  )
}
