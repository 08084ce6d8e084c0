import type { Files } from '../../../sdk/index.js'
import type { CatalogueModel, Prefetch } from './contract.js'
import { bytesHere, TransferFailed } from './transfer.js'
import type { WeightsTransfers } from './transfers.js'
import { isHeld, weightsPath } from './weights.js'

/** Parts of the group that fetching works with. */
export interface PrefetchDeps {
  /** The folder of weights. */
  readonly folder: string
  readonly transfers: Pick<WeightsTransfers, 'fetch'>
  readonly files: Pick<Files, 'read' | 'write' | 'remove'>
  readonly signal: AbortSignal
  readonly changed: () => void
  readonly ended: (type: 'localmodel.held' | 'localmodel.failed', model: string, detail?: string) => void
}

const FILE = 'prefetch'
const TELL_EVERY = 1000

/** Fetches one model ahead of time. */
export class Prefetching {
  readonly #deps: PrefetchDeps
  #running: { model: CatalogueModel; received: number; stop: AbortController; over: Promise<void> } | undefined
  #failed: { model: string; detail: string } | undefined
  #toldAt = 0

  constructor(deps: PrefetchDeps) {
    this.#deps = deps
  }

  /** How far a model is; undefined: there is none to fetch. */
  async state(model: CatalogueModel | undefined): Promise<Prefetch> {
    const running = this.#running
    const shown = running?.model ?? model
    if (!shown) return { model: '', state: 'idle', receivedBytes: 0, totalBytes: 0 }
    const common = { model: shown.model, totalBytes: shown.sizeBytes }
    if (running) return { ...common, state: 'downloading', receivedBytes: running.received }
    if (await isHeld(this.#deps.folder, shown)) return { ...common, state: 'held', receivedBytes: shown.sizeBytes }
    const receivedBytes = await bytesHere(weightsPath(this.#deps.folder, shown))
    if (this.#failed?.model === shown.model)
      return { ...common, state: 'failed', receivedBytes, detail: this.#failed.detail }
    return { ...common, state: 'idle', receivedBytes }
  }

  /** Starts fetching a model, where none is being fetched and it is not here; it is written down before. */
  async start(model: CatalogueModel): Promise<void> {
    if (this.#running || (await isHeld(this.#deps.folder, model))) return
    await this.#deps.files.write(FILE, { sha256: model.sha256 })
    this.#failed = undefined
    const stop = new AbortController()
    const received = await bytesHere(weightsPath(this.#deps.folder, model))
    const running = { model, received, stop, over: Promise.resolve() }
    this.#running = running
    running.over = this.#fetch(running)
    this.#deps.changed()
  }

  /** Stops fetching; what is here stays. */
  async stop(): Promise<void> {
    await this.#deps.files.remove(FILE)
    const running = this.#running
    if (!running) return
    running.stop.abort()
    await running.over
    this.#deps.changed()
  }

  /** Goes on with what was being fetched when the daemon ended. */
  async resume(models: readonly CatalogueModel[]): Promise<void> {
    const begun = await this.#deps.files.read<{ sha256: string }>(FILE)
    const model = begun && models.find(({ sha256 }) => sha256 === begun.sha256)
    if (model) await this.start(model)
  }

  async #fetch(running: { model: CatalogueModel; received: number; stop: AbortController }): Promise<void> {
    const { model, stop } = running
    const { folder, signal, files, transfers } = this.#deps
    try {
      await transfers.fetch({
        url: model.url,
        sha256: model.sha256,
        size: model.sizeBytes,
        path: weightsPath(folder, model),
        signal: AbortSignal.any([signal, stop.signal]),
        received: bytes => {
          running.received = bytes
          if (Date.now() - this.#toldAt < TELL_EVERY) return
          this.#toldAt = Date.now()
          this.#deps.changed()
        },
      })
      await files.remove(FILE)
      this.#deps.ended('localmodel.held', model.model)
    } catch (error) {
      if (signal.aborted || stop.signal.aborted) return
      await files.remove(FILE)
      const detail = error instanceof TransferFailed ? error.message : 'the file could not be written; the log says why'
      this.#failed = { model: model.model, detail }
      this.#deps.ended('localmodel.failed', model.model, error instanceof TransferFailed ? detail : String(error))
    } finally {
      this.#running = undefined
      if (!signal.aborted) this.#deps.changed()
    }
  }
}
