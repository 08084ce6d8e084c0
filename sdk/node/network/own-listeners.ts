import type { Listener } from './addresses.js'

const declared = new Set<() => readonly Listener[]>()

/** Declares what this process listens on, read at each connection; the result takes it back. */
export const declareListeners = (now: () => readonly Listener[]): (() => void) => {
  declared.add(now)
  return () => void declared.delete(now)
}

/** The addresses that daemons in this process listen on now, which no server that somebody names may be. */
export const ownListeners = (): Listener[] => [...declared].flatMap(now => [...now()])
