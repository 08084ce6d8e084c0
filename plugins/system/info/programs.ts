import type { Host } from '../../../sdk/index.js'
import type { Program } from '../../../sdk/kernel.js'

const FRESH = 60_000
const PATIENCE = 5000

/** The machine's programs as the groups found them: searched when first asked for, then refreshed in the background. */
export class Programs {
  readonly #collect: () => Promise<Program[][]>
  readonly #now: () => number
  #found: readonly Program[] = []
  #at = -Infinity
  #asked = false
  #looking: Promise<void> | undefined

  constructor(host: Pick<Host, 'collect'>, now: () => number = Date.now) {
    this.#collect = () => host.collect('system.programs')
    this.#now = now
  }

  /** The last result; the first question waits for it. A new search starts when it is a minute old. */
  async known(): Promise<Program[]> {
    const looking = this.#now() - this.#at >= FRESH ? this.look() : undefined
    if (!this.#asked) await looking
    this.#asked = true
    return this.#found.map(program => ({ ...program, neededBy: [...program.neededBy] }))
  }

  /** Searches now, and waits 5 s at most; a late result is still used. */
  async look(): Promise<void> {
    this.#looking ??= this.#read().finally(() => {
      this.#looking = undefined
    })
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, PATIENCE).unref()
    await Promise.race([this.#looking, late.promise]).finally(() => clearTimeout(timer))
  }

  async #read(): Promise<void> {
    const found = await this.#collect().catch((): Program[][] => [])
    this.#found = merged(found.flat())
    this.#at = this.#now()
  }
}

const merged = (programs: readonly Program[]): Program[] => {
  const byName = Map.groupBy(programs, ({ name }) => name)
  const union = ([first, ...rest]: Program[]): Program => {
    const all = [first!, ...rest]
    const neededBy = new Set(all.flatMap(program => program.neededBy))
    return { ...(all.find(({ present }) => present) ?? first!), neededBy: [...neededBy].sort() }
  }
  return [...byName.values()].map(union).sort((a, b) => (a.name < b.name ? -1 : 1))
}
