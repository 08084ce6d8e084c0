import { existsSync, watch } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { TEMPORARY } from '../../../sdk/node/files/files.js'
import type { Dice } from './dice.js'
import type { Aim } from './driver.js'

/** The longest wait for the aimed operation. */
const LONGEST_MS = 4_000

/** The last duration of each kind of call: the next one is killed within that time. */
const took = new Map<Aim['what'], number>()

/** The moment of a kill: during a call of some kind, or soon after its answer. */
export class Moment implements Aim {
  readonly what: Aim['what']
  readonly #begun = Promise.withResolvers<void>()
  readonly #over = Promise.withResolvers<void>()
  #since = 0

  constructor(what: Aim['what']) {
    this.what = what
  }

  readonly begun = (): void => {
    this.#since = performance.now()
    this.#begun.resolve()
  }

  readonly over = (): void => {
    took.set(this.what, performance.now() - this.#since)
    this.#over.resolve()
  }

  /** Resolves when the moment has come. */
  async wait(dice: Dice, workspace: string): Promise<void> {
    const when = dice.weighed({ begun: 1, over: 2, writing: this.what === 'land' ? 3 : 0 })
    const late = delay(LONGEST_MS, undefined, { ref: false })
    if (when === 'over') await Promise.race([this.#over.promise, late])
    else await Promise.race([this.#begun.promise, late])
    if (when === 'writing') await Promise.race([this.#over.promise, late, landingIn(workspace)])
    await delay(dice.below({ begun: took.get(this.what) ?? 120, over: 30, writing: 5 }[when]))
  }
}

/** Resolves when a landing stages its first file. */
const landingIn = (workspace: string): Promise<void> =>
  new Promise(resolve => {
    const watchers = [workspace, join(workspace, 'work')]
      .filter(folder => existsSync(folder))
      .map(folder =>
        watch(folder, { persistent: false }, (_, name) => {
          if (!name?.startsWith(TEMPORARY)) return
          for (const watcher of watchers) watcher.close()
          resolve()
        }),
      )
  })
