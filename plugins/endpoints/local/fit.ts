import { readFile } from 'node:fs/promises'
import type { Files, Log } from '../../../sdk/index.js'
import { bytesOf, outgoing } from '../../../sdk/node/models/outgoing.js'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import { hasModelServer, measureCards } from './cards.js'
import { LearnedSizes } from './learned.js'
import {
  type CatalogueModel,
  type FitChoice,
  type FitOption,
  type LocalModelFit,
  type ModelShape,
  parseCatalogue,
} from './contract.js'
import { NotGguf, readGguf } from './gguf.js'
import { measureMemory } from './memory.js'
import { neededBytes, windowsOf } from './need.js'
import { offeredSize, shapeOfFile, sizeOfFile } from './transfer.js'
import { isHeld, weightsName, weightsPath, type WeightsSource } from './weights.js'

/** Parts of the group that measuring works with. */
export interface FitDeps {
  readonly folder: string
  /** The file of the deployment with its local models. */
  readonly catalogue?: string
  /** Finds the program that serves models. */
  readonly program: () => Promise<string | undefined>
  readonly files: Pick<Files, 'read' | 'write'>
  readonly log: Pick<Log, 'warn'>
  readonly signal: AbortSignal
}

/** What was measured, without how far the fetch is. */
export type MachineFit = Omit<LocalModelFit, 'prefetch'>

/** A model that this machine is to run: of the catalogue, or a person's own. */
export type LocalModel = WeightsSource & Partial<Pick<CatalogueModel, 'metadata'>>

/** What a model needs with a window of context, and what is there. */
export interface ModelNeed {
  readonly context: number
  readonly weightsBytes: number
  readonly totalBytes: number
  readonly budgetBytes: number
  readonly fits: boolean
}

interface KnownModel {
  readonly shape: ModelShape
  readonly size: number
}

const USUAL_CONTEXT = 32768
const GIB = 1024 ** 3
const KEPT = 5_000
const HEAD_WITHIN = 20_000
const MACHINE = { proc: '/proc', sys: '/sys' }
const NONE: FitChoice = { model: '', context: 0 }

/** Measures what this machine can run. */
export class Fitting {
  readonly #deps: FitDeps
  readonly #shapes = new Map<string, KnownModel>()
  readonly #unreadable = new Set<string>()
  readonly #learned: LearnedSizes
  #kept: { at: number; fit: Promise<MachineFit> } | undefined

  constructor(deps: FitDeps) {
    this.#deps = deps
    this.#learned = new LearnedSizes(deps.files)
  }

  /** The local models that are offered: those of the deployment. */
  async models(): Promise<CatalogueModel[]> {
    const { catalogue, log } = this.#deps
    if (catalogue === undefined) return []
    try {
      const parsed = parseCatalogue(await readFile(catalogue, 'utf8'))
      if (parsed.success) return parsed.data
      const [first] = parsed.errors
      log.warn('the list of local models is not used', { at: first?.path, expected: first?.expected })
    } catch (error) {
      log.warn('the list of local models cannot be read', { error: String(error) })
    }
    return []
  }

  /** What was measured in the last 5 s, or is measured now. */
  now(): Promise<MachineFit> {
    if (this.#kept && Date.now() - this.#kept.at < KEPT) return this.#kept.fit
    const fit = this.#measure()
    this.#kept = { at: Date.now(), fit }
    fit.catch(() => (this.#kept = undefined))
    return fit
  }

  /** The model that is fetched ahead: the best instant one, else the smallest that can be loaded at all. */
  async small(): Promise<CatalogueModel | undefined> {
    const [models, { instant, options }] = await Promise.all([this.models(), this.now()])
    const loadable = options
      .filter(({ windows }) => windows.some(({ fits }) => fits))
      .sort((a, b) => a.weightsBytes - b.weightsBytes)
    const name = instant.model || loadable[0]?.model
    return models.find(({ model }) => model === name)
  }

  /**
   * What a model needs: with a window, or with the largest usual one that runs at full speed.
   *
   * Undefined when nobody knows its numbers; `held` asks no server for them.
   *
   * @throws NotGguf when its file is no model.
   */
  async need(model: LocalModel, wanted?: number, only?: 'held'): Promise<ModelNeed | undefined> {
    // Measuring starts programs: a list that shows what a model needs does not wait for that each time.
    const fit = (only && this.#kept?.fit) ?? this.now()
    const [known, { budgetBytes, fullSpeedBytes }] = await Promise.all([this.#known(model, only), fit])
    if (!known) return undefined
    const sized = await Promise.all(
      (wanted === undefined
        ? windowsOf(known.shape).filter((each, at) => at === 0 || each <= USUAL_CONTEXT)
        : [wanted]
      ).map(async context => ({ context, totalBytes: await this.#bytes(model, known, context) })),
    )
    const best = (most: number) => sized.findLast(({ totalBytes }) => totalBytes <= most)
    const chosen = best(fullSpeedBytes) ?? best(budgetBytes) ?? sized[0]!
    return { ...chosen, weightsBytes: known.size, budgetBytes, fits: chosen.totalBytes <= budgetBytes }
  }

  /** Keeps what a model's server reported of its cache and work. */
  async learn(model: WeightsSource, context: number, bytes: number): Promise<void> {
    await this.#learned.learn(weightsName(model), context, bytes)
    if (this.#kept) this.#kept = { ...this.#kept, at: 0 }
  }

  async #bytes(model: WeightsSource, { shape, size }: KnownModel, context: number): Promise<number> {
    const learned = await this.#learned.bytes(weightsName(model), context)
    return learned === undefined ? neededBytes(shape, size, context) : size + learned
  }

  async #measure(): Promise<MachineFit> {
    const { signal } = this.#deps
    const [program, meter] = await Promise.all([this.#deps.program(), ownProgram('nvidia-smi')])
    const [memory, cards, serverReady, models] = await Promise.all([
      measureMemory(MACHINE),
      measureCards({ sys: MACHINE.sys, meter, server: program }, signal),
      hasModelServer(program, signal),
      this.models(),
    ])
    const { gpu, cards: count, gpuMemoryBytes, gpuFreeBytes } = cards
    const hostBudget = Math.max(0, Math.floor(memory.memoryBytes - Math.max(1.5 * GIB, 0.15 * memory.memoryBytes)))
    const cardBudget = Math.max(0, gpuFreeBytes - count * 0.5 * GIB)
    const budgets = {
      budgetBytes: hostBudget + cardBudget,
      fullSpeedBytes: gpu === 'granted' ? cardBudget : hostBudget,
    }
    const options = (await Promise.all(models.map(model => this.#option(model, budgets)))).flat()
    return {
      ...memory,
      gpu,
      gpuMemoryBytes,
      gpuFreeBytes,
      ...budgets,
      fullSpeedDevice: gpu === 'granted' ? 'gpu' : 'host',
      serverReady,
      options,
      instant: bestOf(options.filter(({ tier }) => tier === 'instant')),
      best: bestOf(options),
    }
  }

  async #option(
    model: CatalogueModel,
    { budgetBytes, fullSpeedBytes }: Pick<LocalModelFit, 'budgetBytes' | 'fullSpeedBytes'>,
  ): Promise<FitOption> {
    const [held, known] = await Promise.all([
      isHeld(this.#deps.folder, model),
      this.#known(model).catch(error => this.#skipped(model, error)),
    ])
    const windows = await Promise.all(
      (known ? windowsOf(known.shape) : []).map(async tokens => {
        const totalBytes = await this.#bytes(model, known!, tokens)
        return { tokens, totalBytes, fits: totalBytes <= budgetBytes, fullSpeed: totalBytes <= fullSpeedBytes }
      }),
    )
    return { model: model.model, label: model.label, tier: model.tier, weightsBytes: model.sizeBytes, held, windows }
  }

  /** The numbers of a model: of its file, else of the catalogue, else of the head of the file where it is offered. */
  async #known(model: LocalModel, only?: 'held'): Promise<KnownModel | undefined> {
    const { folder } = this.#deps
    const { metadata, sizeBytes } = model
    const held = await isHeld(folder, model)
    const key = `${held} ${weightsName(model)}`
    const kept = this.#shapes.get(key)
    if (kept) return kept
    const known = held
      ? await this.#heldShape(model)
      : metadata && sizeBytes !== undefined
        ? { shape: metadata, size: sizeBytes }
        : await this.#headOf(model, only)
    if (known) this.#shapes.set(key, known)
    return known
  }

  async #heldShape(model: LocalModel): Promise<KnownModel | undefined> {
    const path = weightsPath(this.#deps.folder, model)
    const size = await sizeOfFile(path)
    const shape = await shapeOfFile(path, size).catch(() => model.metadata)
    return shape && { shape, size }
  }

  /** Reads the head of a file where it is offered, once; undefined where it cannot be read. */
  async #headOf({ url, sizeBytes, ...named }: LocalModel, only?: 'held'): Promise<KnownModel | undefined> {
    const name = weightsName({ url, ...named })
    const stored = await this.#deps.files.read<ModelShape & { size?: number }>(`heads/${name}`)
    const size = sizeBytes ?? stored?.size
    if (stored && size !== undefined) return { shape: stored, size }
    if (only || this.#unreadable.has(name)) return undefined
    const signal = AbortSignal.any([this.#deps.signal, AbortSignal.timeout(HEAD_WITHIN)])
    try {
      const size = sizeBytes ?? (await offeredSize(url, signal))
      const shape = await readGguf(async (offset, length) => {
        const range = `bytes=${offset}-${Math.min(offset + length, size) - 1}`
        const answer = await outgoing({ url, signal, redirects: 'secure', headers: { range } })
        if (answer.status === 206) return (await bytesOf(answer, length)).bytes
        answer.body.destroy()
        throw new Error(`the server gives no part of the file (${answer.status})`)
      }, size)
      await this.#deps.files.write(`heads/${name}`, { ...shape, ...(sizeBytes === undefined && { size }) })
      return { shape, size }
    } catch (error) {
      if (this.#deps.signal.aborted || error instanceof NotGguf) throw error
      // The server of a person's own model may be back the next time.
      if (sizeBytes !== undefined) this.#unreadable.add(name)
      this.#deps.log.warn('the head of a local model cannot be read', { weights: name, error: String(error) })
      return undefined
    }
  }

  #skipped(model: WeightsSource, error: unknown): undefined {
    if (!(error instanceof NotGguf)) throw error
    this.#unreadable.add(weightsName(model))
    this.#deps.log.warn('a local model of the list is no model', { error: error.message })
  }
}

/** The largest model with its largest window: at full speed first, then one that fits. */
const bestOf = (options: readonly FitOption[]): FitChoice => {
  const larger = [...options].sort((a, b) => b.weightsBytes - a.weightsBytes)
  for (const how of ['fullSpeed', 'fits'] as const) {
    for (const { model, windows } of larger) {
      const window = windows.findLast(each => each[how])
      if (window) return { model, context: window.tokens }
    }
  }
  return { ...NONE }
}
