import { existsSync, watch } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { TEMPORARY } from '../../../sdk/node/files/files.js'
import type { Dice } from './dice.js'
import type { Aim } from './driver.js'

/** How long what is aimed at may take to come about. */
const LONGEST_MS = 4_000

/** How long each kind of call took last: the next one is cut within that time. */
const took = new Map<Aim['what'], number>()

/** The moment of a kill: while a call of some kind is made, or soon after it was answered. */
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

  /** Answers when it has come. */
  async wait(dice: Dice, workspace: string): Promise<void> {
    const when = dice.weighed({ begun: 1, over: 2, writing: this.what === 'land' ? 3 : 0 })
    const late = delay(LONGEST_MS, undefined, { ref: false })
    if (when === 'over') await Promise.race([this.#over.promise, late])
    else await Promise.race([this.#begun.promise, late])
    if (when === 'writing') await Promise.race([this.#over.promise, late, landingIn(workspace)])
    await delay(dice.below({ begun: took.get(this.what) ?? 120, over: 30, writing: 5 }[when]))
  }
}

/** Answers when a landing puts its first file beside its place. */
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
