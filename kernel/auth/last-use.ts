import { ignored } from '../../sdk/ignored.js'
const EVERY = 60_000

/** When and from where something was last used. */
export interface Use {
  readonly at: number
  readonly address: string
}

/** Collects last uses in memory and saves them in a batch, at most once a minute; requests never wait for it. */
export class LastUse {
  readonly #save: () => Promise<void>
  readonly #uses = new Map<string, Use>()
  #timer: NodeJS.Timeout | undefined

  constructor(save: () => Promise<void>) {
    this.#save = save
  }

  mark(id: string, use: Use): void {
    this.#uses.set(id, use)
    this.#timer ??= setTimeout(() => void this.flush(), EVERY).unref()
  }

  get(id: string): Use | undefined {
    return this.#uses.get(id)
  }

  delete(id: string): void {
    this.#uses.delete(id)
  }

  /** Saves pending uses now; ignores failures, which only lose a date of last use. */
  async flush(): Promise<void> {
    if (!this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#save().catch(ignored('only the time of the last use is lost'))
  }
}
