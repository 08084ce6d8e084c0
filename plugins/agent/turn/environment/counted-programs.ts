import type { Limiter } from '../../../../sdk/node/limits/limiter.js'
import type { ProgramEnd, ProgramGroup } from '../../../../sdk/node/limits/group.js'
import { isRunning } from '../../../../sdk/node/programs/is-running.js'

const LOOK_MS = 500

interface Counted {
  readonly limits: ProgramGroup
  readonly gone: () => void
  /** It was gone at the last look: who started it says first how it ended. */
  missed: boolean
}

/** The programs of conversations that other groups start: tool servers, checks. They count like those of its turns. */
export class CountedPrograms {
  readonly #limiter: Pick<Limiter, 'of'>
  readonly #running = new Map<number, Counted>()
  #timer: NodeJS.Timeout | undefined

  constructor(limiter: Pick<Limiter, 'of'>) {
    this.#limiter = limiter
  }

  /** Counts a process until it is gone, whatever becomes of the group that started it. */
  begun(conversationId: string, pid: number): void {
    this.#over(pid)
    const { promise, resolve } = Promise.withResolvers<void>()
    const limits = this.#limiter.of(conversationId)
    this.#running.set(pid, { limits, gone: resolve, missed: false })
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
    limits.begun(pid, promise)
  }

  /** Takes note of how one ended; answers the sentence of the limit that its conversation went over. */
  ended(pid: number, end: ProgramEnd): string | undefined {
    const limits = this.#running.get(pid)?.limits
    limits?.ended(end)
    this.#over(pid)
    return limits?.over
  }

  #over(pid: number): void {
    this.#running.get(pid)?.gone()
    this.#running.delete(pid)
  }

  #look(): void {
    for (const [pid, counted] of this.#running) {
      if (isRunning(pid)) continue
      if (counted.missed) this.#over(pid)
      counted.missed = true
    }
    if (this.#running.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
