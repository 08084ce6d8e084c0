import { Refusal, refuse } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { ConfigFile } from '../../sdk/node/files/config-file.js'
import { assertNarrow, storedCard } from './card-paths.js'
import { personas, type PersonaCard } from './contract.js'

/** The file of cards, from the workspace. */
export const CARDS_FILE = '.sandbox/config/personas.json'
const MOST = 200
/** The maximum size of the file, so that it can be read again. */
const MOST_BYTES = 256 * 1024

/** The content of the file. */
export interface StoredCards {
  readonly cards: ReadonlyMap<string, PersonaCard>
  /** Why entries of it are not used. */
  readonly problems: readonly string[]
  /** Why the whole file is not. */
  readonly wrong?: string
}

/** The cards, in a file that people edit too: read at each use, and written in one step. */
export class CardFile {
  readonly #file: ConfigFile
  readonly #lock = new KeyedMutex()

  constructor(workspace: string) {
    this.#file = new ConfigFile(workspace, CARDS_FILE, 'personas')
  }

  async read(): Promise<StoredCards> {
    const { keys, wrong } = await this.#file.load()
    const cards = new Map<string, PersonaCard>()
    const problems: string[] = []
    for (const [id, value] of Object.entries(keys)) {
      const card = cardOf(id, value)
      if (typeof card === 'string') problems.push(card)
      else cards.set(id, card)
    }
    return { cards, problems, ...(wrong !== undefined && { wrong }) }
  }

  /** A card; refuses an unknown id. */
  async get(id: string): Promise<PersonaCard> {
    return (
      (await this.read()).cards.get(id)
      ?? refuse('not-found', `there is no persona ${JSON.stringify(id.slice(0, 60))}: GET /personas lists them`)
    )
  }

  /** Does something while no card is written. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#lock.with('cards', work)
  }

  /** Writes a card, or with undefined removes it; only while `alone`. The rest of the file is unchanged. */
  async put(id: string, card: PersonaCard | undefined): Promise<void> {
    await this.#edit(keys => {
      const { [id]: _before, ...others } = keys
      if (!card) return others
      if (!Object.hasOwn(keys, id) && Object.keys(others).length >= MOST)
        refuse('conflict', `there are ${MOST} personas already: remove one first`)
      const { id: _id, ...written } = card
      return { ...keys, [id]: written }
    })
  }

  /** Changes every card that can be used. */
  async replaceAll(change: (card: PersonaCard) => PersonaCard): Promise<void> {
    const { cards } = await this.read()
    await this.#edit(keys => {
      const changed = [...cards.values()].map(card => {
        const { id, ...written } = change(card)
        return [id, written] as const
      })
      return { ...keys, ...Object.fromEntries(changed) }
    })
  }

  sweep(): Promise<void> {
    return this.#file.sweep()
  }

  async #edit(next: (keys: { readonly [id: string]: unknown }) => { readonly [id: string]: unknown }): Promise<void> {
    const kept = await this.#file.load()
    if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
    const keys = next(kept.keys)
    const text = JSON.stringify(keys, undefined, 2)
    if (text === JSON.stringify(kept.keys, undefined, 2)) return
    if (Buffer.byteLength(text) >= MOST_BYTES)
      refuse('too-large', `the cards would have ${Buffer.byteLength(text)} bytes: expected less than ${MOST_BYTES}`)
    await this.#file.save({ keys, mode: kept.mode })
  }
}

/** A card as the file has it, or why it cannot be used. */
const cardOf = (id: string, value: unknown): PersonaCard | string => {
  const shown = JSON.stringify(id.slice(0, 60))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return `${shown}: expected a card`
  const checked = personas.request({ call: 'POST /personas', input: { ...value, id } })
  if (!checked.success) {
    const path = checked.errors[0]!.path.replace('$input.input.', '')
    return `${shown}: ${path} does not fit, so there is no such persona`
  }
  const { connected: _connected, ...given } = checked.data.input as PersonaCard & { connected?: unknown }
  try {
    const card = storedCard(given)
    assertNarrow(card)
    return card
  } catch (error) {
    if (error instanceof Refusal) return `${shown}: ${error.message}`
    throw error
  }
}
