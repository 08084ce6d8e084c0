import { readFile } from 'node:fs/promises'
import type { Files, Log } from '../../../sdk/index.js'
import { bytesOf, outgoing } from '../../../sdk/node/models/outgoing.js'
import { hasModelServer, measureCards } from './cards.js'
import {
  type CatalogueModel,
  type FitChoice,
  type FitOption,
  type LocalModelFit,
  type ModelShape,
  parseCatalogue,
} from './contract.js'
import { readGguf } from './gguf.js'
import { measureMemory } from './memory.js'
import { neededBytes, windowsOf } from './need.js'
import { isHeld, weightsPath } from './prefetch.js'
import { shapeOfFile } from './transfer.js'

/** Parts of the group that measuring works with. */
export interface FitDeps {
  readonly folder: string
  /** The file of the deployment with its local models. */
  readonly catalogue?: string
  readonly files: Pick<Files, 'read' | 'write'>
  readonly log: Pick<Log, 'warn'>
  readonly signal: AbortSignal
}

/** What was measured, without how far the fetch is. */
export type MachineFit = Omit<LocalModelFit, 'prefetch'>

const GIB = 1024 ** 3
const KEPT = 5_000
const HEAD_WITHIN = 20_000
const MACHINE = { proc: '/proc', sys: '/sys' }
const NONE: FitChoice = { model: '', context: 0 }

/** Measures what this machine can run. */
export class Fitting {
  readonly #deps: FitDeps
  readonly #shapes = new Map<string, ModelShape>()
  readonly #unreadable = new Set<string>()
  #kept: { at: number; fit: Promise<MachineFit> } | undefined

  constructor(deps: FitDeps) {
    this.#deps = deps
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

  async #measure(): Promise<MachineFit> {
    const { signal } = this.#deps
    const [memory, cards, serverReady, models] = await Promise.all([
      measureMemory(MACHINE),
      measureCards(MACHINE.sys, signal),
      hasModelServer(signal),
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
    const held = await isHeld(this.#deps.folder, model)
    const shape = await this.#shape(model, held)
    const windows = (shape ? windowsOf(shape) : []).map(tokens => {
      const totalBytes = neededBytes(shape!, model.sizeBytes, tokens)
      return { tokens, totalBytes, fits: totalBytes <= budgetBytes, fullSpeed: totalBytes <= fullSpeedBytes }
    })
    return { model: model.model, label: model.label, tier: model.tier, weightsBytes: model.sizeBytes, held, windows }
  }

  /** The numbers of a model: of its file, else of the catalogue, else of the head of the file where it is offered. */
  async #shape(model: CatalogueModel, held: boolean): Promise<ModelShape | undefined> {
    const { sha256, sizeBytes, metadata } = model
    const key = `${held} ${sha256}`
    const known = this.#shapes.get(key)
    if (known) return known
    const shape = held
      ? await shapeOfFile(weightsPath(this.#deps.folder, model), sizeBytes).catch(() => metadata)
      : (metadata ?? (await this.#headOf(model)))
    if (shape) this.#shapes.set(key, shape)
    return shape
  }

  async #headOf({ url, sha256, sizeBytes }: CatalogueModel): Promise<ModelShape | undefined> {
    const stored = await this.#deps.files.read<ModelShape>(`heads/${sha256}`)
    if (stored || this.#unreadable.has(sha256)) return stored
    const signal = AbortSignal.any([this.#deps.signal, AbortSignal.timeout(HEAD_WITHIN)])
    try {
      const shape = await readGguf(async (offset, length) => {
        const range = `bytes=${offset}-${Math.min(offset + length, sizeBytes) - 1}`
        const answer = await outgoing({ url, signal, redirects: 'secure', headers: { range } })
        if (answer.status === 206) return (await bytesOf(answer, length)).bytes
        answer.body.destroy()
        throw new Error(`the server gives no part of the file (${answer.status})`)
      }, sizeBytes)
      await this.#deps.files.write(`heads/${sha256}`, shape)
      return shape
    } catch (error) {
      if (this.#deps.signal.aborted) throw error
      this.#unreadable.add(sha256)
      this.#deps.log.warn('the head of a local model cannot be read', { sha256, error: String(error) })
      return undefined
    }
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
