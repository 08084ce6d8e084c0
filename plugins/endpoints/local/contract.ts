import typia, { type tags } from 'typia'
import type { Count, Size } from '../../../sdk/types.js'

/** What a model needs memory for beside its weights; the numbers of its file. */
export interface ModelShape {
  /** Layers. */
  blocks: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<10000>
  /** Heads of keys and values: of all layers, or of each; 0 for a layer without attention. */
  kvHeads: Count | Count[]
  keyLength: Count
  valueLength: Count
  /** Tokens that a layer with a window sees. */
  slidingWindow?: Count
  /** The layers with a window. */
  sliding?: boolean[]
  /** Tokens it was trained for. */
  contextLength: Count
  /** Tokens it knows. */
  vocabulary: Count
  /** Bytes of the fixed state of a layer without attention. */
  stateBytes?: Size
}
/** A local model that can be chosen. */
export interface CatalogueModel {
  model: string & tags.MinLength<1> & tags.MaxLength<300>
  /** Its name, with its licence. */
  label: string & tags.MinLength<1>
  tier: 'instant' | 'work'
  url: string & tags.Pattern<'^https?://[^\\s]+$'>
  sizeBytes: number & tags.Type<'uint64'> & tags.Minimum<1>
  sha256: string & tags.Pattern<'^[0-9a-f]{64}$'>
  metadata?: ModelShape
}

/** A window of context, and what the model needs with it. */
export interface FitWindow {
  tokens: Count
  totalBytes: Size
  fits: boolean
  fullSpeed: boolean
}
/** A local model, and how it fits this machine. */
export interface FitOption {
  model: string
  label: string
  tier: 'instant' | 'work'
  weightsBytes: Size
  /** Its file is here and checked. */
  held: boolean
  windows: FitWindow[]
}
/** A model with a window; "" and 0 when none fits. */
export interface FitChoice {
  model: string
  context: Count
}
/** How far the fetch of the small model is. */
export interface Prefetch {
  model: string
  state: 'idle' | 'downloading' | 'held' | 'failed'
  receivedBytes: Size
  /** 0: not known yet. */
  totalBytes: Size
  detail?: string
}
/** What this machine can run. */
export interface LocalModelFit {
  /** What this sandbox may use: the machine's memory, or a lower limit. */
  memoryBytes: Size
  /** A limit is below the machine's memory. */
  memoryCapped: boolean
  gpu: 'granted' | 'unsupported' | 'absent'
  gpuMemoryBytes: Size
  gpuFreeBytes: Size
  /** The most a model may take. */
  budgetBytes: Size
  /** The most it may take to run at full speed. */
  fullSpeedBytes: Size
  fullSpeedDevice: 'gpu' | 'host'
  /** `llama-server` is there and starts. */
  serverReady: boolean
  options: FitOption[]
  /** The best of the instant ones that fit. */
  instant: FitChoice
  /** The best of all: at full speed first. */
  best: FitChoice
  prefetch: Prefetch
}

export interface LocalModelCalls {
  /**
   * Say what this machine can run: its memory, limit and cards, and the bytes that each local model needs with each
   * window of context.
   *
   * Measured now and kept for 5 s. Of a model whose numbers nobody knows, the head of its file is read once; nothing
   * else is fetched.
   */
  'GET /endpoints/local-model/fit'(): LocalModelFit

  /**
   * Start or stop fetching the small local model ahead of time, and say how far that is.
   *
   * It goes on when the caller leaves, and after a restart of the daemon. Stopping keeps what is there, and the next
   * start continues it.
   *
   * - 422: to start, where no local model can be loaded on this machine at all
   */
  'POST /endpoints/local-model/prefetch'(input: { action: 'start' | 'stop' }): Prefetch
}

/** The list of local models that a text holds as JSON; throws where it is none. */
export const parseCatalogue = typia.json.createValidateParse<CatalogueModel[]>()
