import { refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { randomName } from '../preview/names.js'
import type { ForwardedProgram, ForwardSlot, PreviewStore } from '../preview/store.js'
import { placeKey, type PortPlace, type ScannedPort } from '../scan/scan.js'
import { isSameProcess, isSameProgram } from './same-program.js'

/** How long a forward waits for its program to come back. */
const WAITS_MS = 24 * 3_600_000
const MOST = 16

/** Why the sandbox ended a forward by itself. */
export type EndReason =
  | 'another program took the port'
  | 'nothing listened for 24 hours'
  | 'replaced by another forward'
  | 'the program ended while the sandbox was stopped'

/** The dependencies of the forwards. */
export interface ForwardsDeps {
  readonly store: PreviewStore
  /** The ports now, or as they were a second ago. */
  readonly scan: (fresh: boolean) => Promise<readonly ScannedPort[]>
  /** The start of the machine. */
  readonly boot: () => Promise<string>
  /** Whether a server speaks HTTPS. */
  readonly probe: (found: ScannedPort) => Promise<boolean>
  readonly changed: () => void
  /** The sandbox ended a forward. */
  readonly ended: (slot: ForwardSlot, reason: EndReason) => void
  /** Ends the open connections of a slot. */
  readonly cut: (slot: ForwardSlot) => void
  readonly now?: () => number
}

/** The ports that are forwarded: each keeps its address, and leads to one program. */
export class Forwards {
  readonly #deps: ForwardsDeps
  readonly #turns = new KeyedMutex()

  constructor(deps: ForwardsDeps) {
    this.#deps = deps
  }

  /** The slot of a forwarded port. */
  at(place: PortPlace): ForwardSlot | undefined {
    const slot = this.#deps.store.slotAt(place)
    return slot?.forward && slot
  }

  get active(): ForwardSlot[] {
    return this.#deps.store.state.slots.filter(({ forward }) => forward)
  }

  /** Refuses a place that cannot be forwarded. */
  async assert(place: PortPlace): Promise<void> {
    forwardable(await this.#deps.scan(true), place)
  }

  /** Ends forwards whose program did not come back in time. */
  async expire(): Promise<void> {
    const now = this.#now()
    if (this.active.some(({ forward }) => now - (forward!.goneAt ?? now) >= WAITS_MS)) await this.settle()
  }

  /** Forwards a port to what listens there now, as `assert` saw it at most a second ago. */
  forward(place: PortPlace): Promise<{ slot: ForwardSlot; title: string }> {
    return this.#alone(async () => {
      const ports = await this.#deps.scan(false)
      const found = forwardable(ports, place)
      const forward = await this.#programOf(found, await this.#deps.probe(found))
      const slot = await this.#claim(place, ports, forward)
      this.#deps.changed()
      return { slot, title: found.title }
    })
  }

  /** Ends a forward; false if there was none. */
  unforward(place: PortPlace): Promise<boolean> {
    return this.#alone(async () => {
      const slot = this.at(place)
      if (!slot) return false
      await this.#end([slot])
      return true
    })
  }

  /** Compares the forwards with what listens now, or listened a second ago. */
  settle(fresh = true): Promise<void> {
    return this.#alone(() => this.#settle(isSameProgram, fresh))
  }

  /** After a start of the daemon a forward stands only where the same process listens. */
  recover(): Promise<void> {
    return this.#alone(() => this.#settle(isSameProcess, true))
  }

  async #settle(stands: typeof isSameProgram, fresh: boolean): Promise<void> {
    if (this.active.length === 0) return
    const [ports, boot] = [await this.#deps.scan(fresh), await this.#deps.boot()]
    const now = this.#now()
    const over: { slot: ForwardSlot; reason: EndReason }[] = []
    const next = new Map<string, ForwardedProgram>()
    for (const slot of this.active) {
      const { forward } = slot
      const found = ports.find(each => placeKey(each) === placeKey(slot))
      if (!found && stands === isSameProgram) {
        const { goneAt = now } = forward!
        if (now - goneAt >= WAITS_MS) over.push({ slot, reason: 'nothing listened for 24 hours' })
        else if (forward!.goneAt === undefined) next.set(slot.name, { ...forward!, goneAt })
      } else if (!found || !stands(forward!, found, boot)) {
        const reason =
          stands === isSameProgram ? 'another program took the port' : 'the program ended while the sandbox was stopped'
        over.push({ slot, reason })
      } else {
        const { goneAt: _, ...kept } = { ...forward!, ...identityOf(found, boot) }
        if (JSON.stringify(kept) !== JSON.stringify(forward)) next.set(slot.name, kept)
      }
    }
    if (next.size > 0)
      await this.#deps.store.change(({ slots }) => ({
        slots: slots.map(slot => (next.has(slot.name) ? { ...slot, forward: next.get(slot.name)! } : slot)),
      }))
    await this.#end(over.map(({ slot }) => slot))
    for (const { slot, reason } of over) this.#deps.ended(slot, reason)
    if (next.size > 0) this.#deps.changed()
  }

  async #end(ended: readonly ForwardSlot[]): Promise<void> {
    if (ended.length === 0) return
    const names = new Set(ended.map(({ name }) => name))
    const usedAt = this.#now()
    await this.#deps.store.change(({ slots }) => ({
      slots: slots.map(({ forward, ...slot }) =>
        names.has(slot.name) ? { ...slot, usedAt } : { ...slot, ...(forward && { forward }) },
      ),
    }))
    for (const slot of ended) this.#deps.cut(slot)
    this.#deps.changed()
  }

  /** The slot of a place: its own, else a new one, else that which was unused for the longest time. */
  async #claim(place: PortPlace, ports: readonly ScannedPort[], forward: ForwardedProgram): Promise<ForwardSlot> {
    const { store, cut, ended } = this.#deps
    const { slots } = store.state
    const known = store.slotAt(place)
    const live = new Set(ports.map(placeKey))
    const replaced =
      known || slots.length < MOST
        ? known
        : (slots.filter(slot => !slot.forward).sort(byAge)[0]
          ?? slots.filter(slot => !live.has(placeKey(slot))).sort(byAge)[0]
          ?? allUsed(slots))
    const slot: ForwardSlot = {
      port: place.port,
      ...(place.conversationId !== undefined && { conversationId: place.conversationId }),
      // The address of another port must not lead to this one.
      name: known?.name ?? randomName(),
      usedAt: this.#now(),
      forward,
    }
    await store.change(state => ({ slots: [...state.slots.filter(each => each.name !== replaced?.name), slot] }))
    if (!known && replaced) {
      cut(replaced)
      if (replaced.forward) ended(replaced, 'replaced by another forward')
    }
    return slot
  }

  async #programOf(found: ScannedPort, https: boolean): Promise<ForwardedProgram> {
    return { ...identityOf(found, await this.#deps.boot()), https }
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.with('forwards', work)
  }

  #now(): number {
    return (this.#deps.now ?? Date.now)()
  }
}

const identityOf = (
  { holder, takers, title, starter }: ScannedPort,
  boot: string,
): Omit<ForwardedProgram, 'https'> => ({
  ...(holder && { pid: holder.pid, began: holder.began }),
  boot,
  inodes: takers.map(({ inode }) => inode).sort(),
  ...(starter !== undefined && { starter }),
  title,
})

/** The longest without a listener first. */
const byAge = (a: ForwardSlot, b: ForwardSlot): number =>
  (a.forward?.goneAt ?? a.usedAt) - (b.forward?.goneAt ?? b.usedAt)

const placed = ({ port, conversationId }: PortPlace): string =>
  `${port}${conversationId === undefined ? '' : ` of ${conversationId}`}`

const allUsed = (slots: readonly ForwardSlot[]): never => {
  const named = slots.map(placed)
  return refuse('conflict', `all ${MOST} addresses lead to running programs (${named.join(', ')}): end one first`)
}

/** What listens at a place that may be forwarded. */
const forwardable = (ports: readonly ScannedPort[], place: PortPlace): ScannedPort => {
  const { port, conversationId } = place
  const found = ports.find(each => placeKey(each) === placeKey(place))
  if (found?.own) return refuse('unprocessable', `port ${port} belongs to the sandbox itself`)
  if (!found && conversationId !== undefined)
    refuse('not-found', `nothing is listening on port ${port} in the network of the conversation ${conversationId}`)
  if (!found) return refuse('not-found', `nothing is listening on port ${port}`)
  if (!found.forwardable)
    return refuse('unprocessable', `port ${port} is not reached over loopback: let its server listen on 127.0.0.1`)
  return found
}
