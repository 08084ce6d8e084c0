import type { Log, Store } from '../../../sdk/index.js'
import { CHARACTERS_A_TOKEN } from '../providers/native/compaction.js'
import type { OutputArm, OutputSavings } from './contract.js'

/** What became of the output of one command. */
export interface ShortenedOutput {
  readonly at: number
  /** A short name without arguments. */
  readonly command: string
  readonly rawCharacters: number
  readonly emittedCharacters: number
  /** Drawn to stay as it is. */
  readonly heldOut: boolean
  /** Characters that each cleaner left out. */
  readonly saved: ReadonlyMap<string, number>
}

interface Tally {
  commands: number
  tokens: number
}
type Tallies = { [name: string]: Tally }
/** The sums of one day. */
interface DaySums {
  updatedAt: number
  rawTokens: number
  cleaned: OutputArm
  heldOut: OutputArm
  cleaners: Tallies
  gaps: Tallies
}
type OutputStore = Pick<Store, 'all' | 'get' | 'set'>

const DAYS = 'outputs/'
const WRITE_MS = 1_000
const MOST_NAMES = 200
const MOST_GAPS = 10
/** An output with fewer tokens is no gap, nor is one of which more than this part was left out. */
const LONG = 500
const LITTLE = 0.05

const tokensIn = (characters: number): number => Math.ceil(characters / CHARACTERS_A_TOKEN)
const noSums = (): DaySums => ({
  ...{ updatedAt: 0, rawTokens: 0, cleaners: {}, gaps: {} },
  cleaned: { commands: 0, tokens: 0, squares: 0 },
  heldOut: { commands: 0, tokens: 0, squares: 0 },
})

const tally = (tallies: Tallies, name: string, commands: number, tokens: number): void => {
  const known = Object.hasOwn(tallies, name) ? tallies[name]! : { commands: 0, tokens: 0 }
  if (!Object.hasOwn(tallies, name) && Object.keys(tallies).length >= MOST_NAMES) return
  tallies[name] = { commands: known.commands + commands, tokens: known.tokens + tokens }
}

const addArm = (arm: OutputArm, { commands, tokens, squares }: OutputArm): void => {
  arm.commands += commands
  arm.tokens += tokens
  arm.squares += squares
}

/**
 * What was left out of the outputs of commands, summed by day. A kill loses at most the last second of it: no command
 * waits for a statistic.
 */
export class OutputLedger {
  readonly #store: OutputStore
  readonly #log: Pick<Log, 'warn'>
  #day: { readonly name: string; readonly sums: DaySums } | undefined
  #work: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(store: OutputStore, log: Pick<Log, 'warn'>) {
    this.#store = store
    this.#log = log
  }

  /** Adds a command; returns at once. */
  add(output: ShortenedOutput): void {
    this.#do(async () => {
      const day = await this.#dayOf(output.at)
      count(day.sums, output)
      this.#timer ??= setTimeout(() => this.#do(() => this.#write()), WRITE_MS).unref()
    })
  }

  /** The sums of some days. */
  async savings({ from = '', to = '9' }: { from?: string; to?: string }): Promise<OutputSavings> {
    await this.close()
    const all = await this.#store.all<DaySums>(DAYS)
    const sum = noSums()
    for (const [key, day] of all) {
      const name = key.slice(DAYS.length)
      if (name < from || name > to) continue
      sum.updatedAt = Math.max(sum.updatedAt, day.updatedAt)
      sum.rawTokens += day.rawTokens
      addArm(sum.cleaned, day.cleaned)
      addArm(sum.heldOut, day.heldOut)
      for (const [id, { commands, tokens }] of Object.entries(day.cleaners)) tally(sum.cleaners, id, commands, tokens)
      for (const [name, { commands, tokens }] of Object.entries(day.gaps)) tally(sum.gaps, name, commands, tokens)
    }
    const largest = (tallies: Tallies) =>
      Object.entries(tallies).sort(([, one], [, other]) => other.tokens - one.tokens)
    return {
      ...(sum.updatedAt > 0 && { updatedAt: sum.updatedAt }),
      commands: sum.cleaned.commands,
      rawTokens: sum.rawTokens,
      emittedTokens: sum.cleaned.tokens,
      perCleaner: largest(sum.cleaners).map(([id, { commands, tokens }]) => ({ id, commands, savedTokens: tokens })),
      cleaned: sum.cleaned,
      heldOut: sum.heldOut,
      gaps: largest(sum.gaps)
        .slice(0, MOST_GAPS)
        .map(([command, { commands, tokens }]) => ({ command, commands, tokens })),
    }
  }

  /** Resolves when everything is written. */
  async close(): Promise<void> {
    this.#do(() => this.#write())
    await this.#work
  }

  #do(work: () => Promise<void>): void {
    this.#work = this.#work
      .then(work)
      .catch(error => this.#log.warn('counting the output of commands failed', { error: String(error) }))
  }

  async #dayOf(at: number): Promise<{ readonly name: string; readonly sums: DaySums }> {
    const name = new Date(at).toISOString().slice(0, 10)
    if (this.#day?.name === name) return this.#day
    await this.#write()
    this.#day = { name, sums: (await this.#store.get<DaySums>(DAYS + name)) ?? noSums() }
    return this.#day
  }

  async #write(): Promise<void> {
    const waiting = this.#timer !== undefined
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#day && waiting) await this.#store.set(DAYS + this.#day.name, this.#day.sums)
  }
}

const count = (sums: DaySums, output: ShortenedOutput): void => {
  const { at, command, heldOut, saved } = output
  const [raw, emitted] = [tokensIn(output.rawCharacters), tokensIn(output.emittedCharacters)]
  sums.updatedAt = Math.max(sums.updatedAt, at)
  addArm(heldOut ? sums.heldOut : sums.cleaned, { commands: 1, tokens: emitted, squares: emitted ** 2 })
  if (heldOut) return
  sums.rawTokens += raw
  for (const [id, characters] of saved) tally(sums.cleaners, id, 1, tokensIn(characters))
  if (raw >= LONG && raw - emitted < raw * LITTLE) tally(sums.gaps, command, 1, raw)
}
