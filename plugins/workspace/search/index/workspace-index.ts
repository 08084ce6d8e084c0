import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Host } from '../../../../sdk/index.js'
import { programFile } from '../../../../sdk/node/programs/package.js'
import type { WorkspaceChanges } from '../../watch/changes.js'
import type { SearchFreshness } from '../contract.js'
import type { IndexAnswer, IndexQuestions, IndexRequest, IndexState, IndexWorkerData } from './index-questions.js'
import { ignored } from '../../../../sdk/index.js'

const WORKER = programFile('plugins/workspace/search/index/index-worker.js')
const IDLE_MS = 900_000
const WAIT = { most: 50, ms: 250 }
const MOST_MEMORY_MB = 1024
const MOST_PASSED_OVER = 100
const POLLED_MS = 5_000

interface Waiting {
  readonly resolve: (answer: IndexAnswer) => void
  readonly reject: (error: Error) => void
}

/** The index of the shared tree, in its own thread, which ends after 15 minutes without a query. */
export class WorkspaceIndex {
  readonly #host: Host
  readonly #changes: WorkspaceChanges
  readonly #passOver = new Set<string>()
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #reading: string | undefined
  #next = 0
  #generation = 0
  #comparedAt = 0
  #building = false
  #idle: NodeJS.Timeout | undefined
  #starting: Promise<void> | undefined

  constructor(host: Host, changes: WorkspaceChanges) {
    this.#host = host
    this.#changes = changes
    host.signal.addEventListener('abort', () => this.#end(), { once: true })
  }

  /** The answer to a query about the current files, as far as they could be read in 250 ms. */
  async ask<Q extends keyof IndexQuestions>(
    ask: Q,
    input: IndexQuestions[Q]['input'],
  ): Promise<{ value: IndexQuestions[Q]['output']; freshness: SearchFreshness }> {
    await this.#follow()
    const { value, state } = await this.#request({ ask, input, wait: WAIT })
    this.#note(state)
    return { value: value as IndexQuestions[Q]['output'], freshness: freshnessOf(state) }
  }

  /** Reads paths again for which the index was outdated. */
  async reread(paths: readonly string[]): Promise<void> {
    await this.#request({ ask: 'changed', input: { paths } })
  }

  /** Passes the changes since the last query to the index. */
  async #follow(): Promise<void> {
    // Changes that the system reported together with this request are applied first.
    for (let turns = 0; turns < 2; turns++) await new Promise<void>(resolve => setImmediate(resolve))
    const tree = { root: this.#host.place.workspace, reach: undefined, readsGit: false }
    if (!this.#worker) {
      await (this.#starting ??= this.#start(tree).finally(() => (this.#starting = undefined)))
      return
    }
    const { watch } = await this.#changes.now(tree)
    const { paths, reset, generation } = await this.#changes.since(tree, this.#generation)
    this.#generation = generation
    if (reset || (watch === 'polling' && Date.now() - this.#comparedAt > POLLED_MS)) await this.#compare()
    else if (paths.length > 0) await this.reread(paths)
  }

  async #start(tree: { root: string; reach: undefined; readsGit: boolean }): Promise<void> {
    const { generation } = await this.#changes.now(tree)
    this.#generation = generation
    const data: IndexWorkerData = {
      root: tree.root,
      path: join(this.#host.place.folder, 'search', 'index.sqlite'),
      vectors: join(this.#host.place.folder, 'search', 'vectors.sqlite'),
      passOver: [...this.#passOver],
    }
    const worker = new Worker(WORKER, {
      workerData: data,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
    })
    worker.unref()
    worker.on('message', (message: IndexAnswer | { reading: string }) => {
      if ('reading' in message) this.#reading = message.reading
      else this.#waiting.get(message.id)?.resolve(message)
    })
    const over = (error: unknown) => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      if (this.#reading !== undefined && this.#passOver.size < MOST_PASSED_OVER) this.#passOver.add(this.#reading)
      this.#host.log.warn('the search index ended and starts again', { reading: this.#reading, error: String(error) })
      for (const { reject } of this.#waiting.values()) reject(new Error('the search index ended: ask again'))
    }
    worker.once('error', over).once('exit', over)
    this.#worker = worker
    await this.#compare()
  }

  async #compare(): Promise<void> {
    this.#comparedAt = Date.now()
    await this.#request({ ask: 'compare', input: {} })
  }

  async #request(request: Omit<IndexRequest, 'id'>): Promise<IndexAnswer> {
    const worker = this.#worker
    if (!worker) throw new Error('the search index ended: ask again')
    clearTimeout(this.#idle)
    const id = ++this.#next
    const { promise, resolve, reject } = Promise.withResolvers<IndexAnswer>()
    this.#waiting.set(id, { resolve, reject })
    try {
      worker.postMessage({ id, ...request } satisfies IndexRequest)
      const answer = await promise
      if (answer.failed !== undefined) throw new Error(answer.failed)
      return answer
    } finally {
      this.#waiting.delete(id)
      this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref()
    }
  }

  /** Announces that the first build began or ended. */
  #note({ built }: IndexState): void {
    if (this.#building === !built) return
    this.#building = !built
    void this.#host
      .call('kernel.events.publish', { domain: 'index' })
      .catch(ignored('clients read the state again when they connect'))
    if (!built) void this.#untilBuilt()
  }

  async #untilBuilt(): Promise<void> {
    while (this.#worker && this.#building) {
      await new Promise(resolve => setTimeout(resolve, 1_000).unref())
      const answer = await this.#request({ ask: 'defined', input: { paths: [] } }).catch(() => undefined)
      if (answer) this.#note(answer.state)
    }
  }

  #end(): void {
    clearTimeout(this.#idle)
    const worker = this.#worker
    this.#worker = undefined
    this.#reading = undefined
    for (const { reject } of this.#waiting.values()) reject(new Error('the search index was closed'))
    void worker?.terminate()
  }
}

const freshnessOf = ({ built, behind, progress, agreedAt, full }: IndexState): SearchFreshness => {
  if (!built) return { state: 'building', progress: Math.round(progress * 1000) / 1000 }
  if (behind > 0 || full) return { state: 'stale', ageMs: Math.max(0, Date.now() - agreedAt), behind }
  return { state: 'fresh', ageMs: 0 }
}
