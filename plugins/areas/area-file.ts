import { refuse, type Files } from '../../sdk/index.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import type { Access } from '../../sdk/reach.js'

/** A stored area. */
export interface StoredArea {
  readonly id: string
  readonly label: string
  readonly note?: string
  /** Real locations from the workspace root, as they were when the area was written. */
  readonly folders: readonly string[]
  readonly access: Access
  readonly createdAt: number
  readonly updatedAt: number
  readonly updatedBy: string
}

const FILE = 'areas'
const MOST = 200

/** Every area, in memory and as one sealed document: a change is written whole or not at all, one after another. */
export class AreaFile {
  readonly #files: Pick<Files, 'read' | 'write'>
  readonly #locks = new KeyedMutex()
  #areas: ReadonlyMap<string, StoredArea> = new Map()

  constructor(files: Pick<Files, 'read' | 'write'>) {
    this.#files = files
  }

  async load(): Promise<void> {
    const stored = await this.#files.read<{ areas: StoredArea[] }>(FILE)
    this.#areas = new Map(stored?.areas.map(area => [area.id, area]))
  }

  /** By label, and those of one label by id. */
  get all(): StoredArea[] {
    return [...this.#areas.values()].sort((one, other) => order(one.label, other.label) || order(one.id, other.id))
  }

  find(id: string): StoredArea | undefined {
    return this.#areas.get(id)
  }

  get(id: string): StoredArea {
    return this.#areas.get(id) ?? this.missing(id)
  }

  /** Refuses an area that does not exist for the caller. */
  missing(id: string): never {
    return refuse('not-found', `there is no area ${JSON.stringify(id.slice(0, 60))}`)
  }

  /** Adds an area or replaces the one with its id, and returns the previous one. */
  put(
    id: string,
    next: (before: StoredArea | undefined) => StoredArea,
  ): Promise<{ before?: StoredArea; area: StoredArea }> {
    return this.alone(async () => {
      const before = this.#areas.get(id)
      if (!before && this.#areas.size >= MOST)
        refuse('conflict', `there are ${MOST} areas already: delete one without holders, then write this one`)
      const area = next(before)
      await this.#keep(new Map(this.#areas).set(id, area))
      return { area, ...(before && { before }) }
    })
  }

  /** Removes an area, unless `check` throws. */
  remove(id: string, check: () => Promise<void>): Promise<void> {
    return this.alone(async () => {
      this.get(id)
      await check()
      const left = new Map(this.#areas)
      left.delete(id)
      await this.#keep(left)
    })
  }

  /** Runs work while no area is written. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#locks.with(FILE, work)
  }

  async #keep(areas: ReadonlyMap<string, StoredArea>): Promise<void> {
    await this.#files.write(FILE, { areas: [...areas.values()] })
    failpoint('areas.kept')
    this.#areas = areas
  }
}

const order = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
