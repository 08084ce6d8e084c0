import type { Files } from '../../../sdk/index.js'
import type { PortPlace } from '../scan/scan.js'
import { placeKey } from '../scan/scan.js'
import { ignored } from '../../../sdk/index.js'

/** The program that a forward leads to. */
export interface ForwardedProgram {
  /** The oldest process that listened, and when it began; absent: the system does not show it. */
  readonly pid?: number
  readonly began?: string
  /** The start of the machine in which these names mean something. */
  readonly boot: string
  /** The sockets on which it listened. */
  readonly inodes: readonly string[]
  readonly starter?: string
  readonly https: boolean
  readonly title: string
  /** Since when nothing listens. */
  readonly goneAt?: number
}

/** One of the addresses of forwarded ports. */
export interface ForwardSlot extends PortPlace {
  /** The random part of its name. */
  readonly name: string
  /** When it was last forwarded, or ended. */
  readonly usedAt: number
  /** Absent: not forwarded. */
  readonly forward?: ForwardedProgram
}

/** The address of a program that a group registered. */
export interface LabelRecord {
  readonly label: string
  readonly name: string
  readonly usedAt: number
  /** Absent: not registered now. */
  readonly program?: {
    readonly pid: number
    readonly began: string
    readonly boot: string
    readonly port?: number
  }
}

interface PreviewState {
  /** The port of the preview listener at its last start: addresses contain it. */
  readonly listener?: number
  readonly slots: readonly ForwardSlot[]
  readonly labels: readonly LabelRecord[]
}

const FILE = 'previews'

/** What the group keeps, in one document; a change is durable when it is visible. */
export class PreviewStore {
  readonly #files: Pick<Files, 'read' | 'write'>
  #state: PreviewState = { slots: [], labels: [] }
  #writing: Promise<unknown> = Promise.resolve()

  constructor(files: Pick<Files, 'read' | 'write'>) {
    this.#files = files
  }

  get state(): PreviewState {
    return this.#state
  }

  async load(): Promise<void> {
    this.#state = (await this.#files.read<PreviewState>(FILE)) ?? this.#state
  }

  slotAt(place: PortPlace): ForwardSlot | undefined {
    return this.#state.slots.find(slot => placeKey(slot) === placeKey(place))
  }

  /** Replaces parts of the state, one change after another. */
  change(next: (state: PreviewState) => Partial<PreviewState>): Promise<void> {
    const written = this.#writing.then(async () => {
      const state = { ...this.#state, ...next(this.#state) }
      await this.#files.write(FILE, state)
      this.#state = state
    })
    this.#writing = written.catch(ignored('the step before told its own caller'))
    return written
  }
}
