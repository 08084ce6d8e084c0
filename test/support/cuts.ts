import { createHash } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { CUTS, Disk, restore, type Moment } from './power.js'
import { folderOf } from './daemon.js'

const MOST_FAULTS = 3

/** The successive states of a store, and the last acknowledged one. */
export class Promised<S> {
  readonly #states: S[]
  readonly #acknowledged: () => void
  #kept = 0

  constructor(first: S, acknowledged: () => void) {
    this.#states = [first]
    this.#acknowledged = acknowledged
  }

  /** Changes the store to another state; once this is acknowledged, a cut must not undo it. */
  async step(state: S, work: () => Promise<unknown>): Promise<void> {
    const at = this.#states.push(state) - 1
    await work()
    this.#kept = Math.max(this.#kept, at)
    this.#acknowledged()
  }

  /** Changes the store without a promise of durability. */
  async loose(state: S, work: () => Promise<unknown>): Promise<void> {
    this.#states.push(state)
    await work()
  }

  get last(): S {
    return this.#states.at(-1)!
  }

  /** The states in which a store may be found now: from the last acknowledged to the last requested one. */
  allowed(): readonly S[] {
    return this.#states.slice(this.#kept)
  }
}

export interface Cutting<S> {
  /** An existing folder; left out: a fresh one. */
  readonly at?: string
  readonly first: S
  /** Creates the initial files, which count as flushed. */
  readonly before?: (folder: string) => unknown
  /** Works with a store below the folder. */
  readonly drive: (folder: string, promised: Promised<S>) => Promise<unknown>
  /** Opens the store below a folder after a cut, and returns its state. */
  readonly found: (folder: string) => Promise<S>
  /** Accepts further states that an unfinished step may leave. */
  readonly fits?: (found: S, allowed: readonly S[]) => boolean
  readonly left?: (path: string) => boolean
}

/** A pseudo-random sequence that is the same in every run. */
const sequence = (seed: number) => (): number => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

const same = <S>(found: S, allowed: readonly S[]): boolean => {
  const text = JSON.stringify(found)
  return allowed.some(state => JSON.stringify(state) === text)
}

/** Cuts the power around every flush and after every acknowledgement, in each of `CUTS`, and reopens the store. */
export const cutEverywhere = async <S>(
  t: Test,
  { at: given, first, before, drive, found, fits = same, left }: Cutting<S>,
): Promise<void> => {
  const folder = given ?? join(folderOf(t), 'disk')
  const cutTo = `${folder}-cut`
  t.teardown(() => rmSync(cutTo, { recursive: true, force: true }))
  mkdirSync(folder, { recursive: true })
  await before?.(folder)
  const disk = new Disk(folder, left)
  t.teardown(() => disk.end())
  const moments: { moment: Moment; allowed: readonly S[] }[] = []
  const take = (): void => void moments.push({ moment: disk.moment(), allowed: promised.allowed() })
  const promised = new Promised(first, take)
  disk.around = take
  await drive(folder, promised)
  disk.end()
  take()
  const faults: string[] = []
  const seen = new Set<string>()
  for (const [at, { moment, allowed }] of moments.entries()) {
    for (const cut of CUTS) {
      if (faults.length >= MOST_FAULTS) break
      const image = moment.image(cut, sequence(at))
      const digest = createHash('sha256').update(JSON.stringify(allowed))
      for (const [path, is] of image)
        digest
          .update(path)
          .update(Buffer.isBuffer(is) ? `.${is.length}.` : is.kind)
          .update(Buffer.isBuffer(is) ? is : is.link)
      const known = digest.digest('hex')
      if (seen.has(known)) continue
      seen.add(known)
      restore(image, cutTo)
      const state = await found(cutTo).catch((error: unknown) => error as Error)
      if (state instanceof Error)
        faults.push(`moment ${at} of ${moments.length}, ${cut}: the store does not open: ${state.stack}`)
      else if (!fits(state, allowed))
        faults.push(
          `moment ${at} of ${moments.length}, ${cut}: found ${JSON.stringify(state)}, expected one `
            + `of ${JSON.stringify(allowed)}`,
        )
    }
  }
  t.same(faults, [], `no acknowledged change is lost in ${seen.size} cuts`)
}
