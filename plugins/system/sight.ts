import type { Caller, Host, ReachFolder } from '../../sdk/index.js'
import { reachFor } from '../../sdk/node/asked-reach.js'

interface Watching {
  readonly caller: Caller
  readonly reach: string
}

const PAUSE = 500

/** Whoever watches and is limited to areas: told of when the folders they reach are others than those they began with. */
export class Limited {
  readonly #host: Pick<Host, 'call' | 'serves' | 'signal'>
  readonly #moved: (email: string) => Promise<unknown>
  readonly #watching = new Set<Watching>()
  #looking: NodeJS.Timeout | undefined

  /** @param moved Ends what stands on the old reach of a person. */
  constructor(host: Pick<Host, 'call' | 'serves' | 'signal'>, moved: (email: string) => Promise<unknown>) {
    this.#host = host
    this.#moved = moved
  }

  /** Looks after a watcher from now on; call the answer when it has gone. */
  watch(caller: Caller, reach: readonly ReachFolder[]): () => void {
    const watching = { caller, reach: JSON.stringify(reach) }
    this.#watching.add(watching)
    this.#begin()
    return () => void this.#watching.delete(watching)
  }

  /** A person was given other areas: streams of whoever reaches less have ended already, those of whoever reaches more do now. */
  granted(email: string, areas: readonly string[] | undefined): void {
    const now = JSON.stringify(areas)
    const stale = [...this.#watching].filter(({ caller }) => caller.email === email && JSON.stringify(caller.areas) !== now)
    if (stale.length > 0) void this.#moved(email).catch(() => {})
  }

  #begin(): void {
    if (this.#looking || !this.#watching.size || this.#host.signal.aborted) return
    this.#looking = setTimeout(() => void this.#look().catch(() => {}).finally(() => {
      this.#looking = undefined
      this.#begin()
    }), PAUSE).unref()
  }

  /** Folders go and come back without anybody telling: only looking at them shows it. */
  async #look(): Promise<void> {
    const all = [...this.#watching]
    const sets = new Map(all.map(({ caller }) => [JSON.stringify(caller.areas), caller]))
    const now = new Map(await Promise.all([...sets].map(async ([name, caller]) => [name, JSON.stringify(await reachFor(this.#host, caller))] as const)))
    const moved = all.filter(({ caller, reach }) => now.get(JSON.stringify(caller.areas)) !== reach)
    for (const watching of moved) this.#watching.delete(watching)
    for (const email of new Set(moved.flatMap(({ caller }) => caller.email ?? []))) await this.#moved(email)
  }
}
