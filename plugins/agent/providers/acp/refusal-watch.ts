import type { TurnFailure } from '../adapter.js'
import { complaintIn } from './known-programs.js'
import type { PeerSession } from './peer-session.js'
import type { AgentProgram } from './program.js'
import { refusalIn } from './refusals.js'

const REFUSED_MS = 3_000

/** A watch over a prompt: its signal ends the prompt, because of the failure. */
export interface RefusalWatch {
  readonly signal: AbortSignal
  readonly failure: TurnFailure | undefined
  over(): void
}

/**
 * Ends the prompt of a program that silently retries a server that refuses it.
 *
 * @param updates The number of updates so far; a program that sends more has recovered.
 */
export const watchRefusals = (
  { label, command: [program] }: Pick<AgentProgram, 'label' | 'command'>,
  peer: Pick<PeerSession, 'onOutput'>,
  updates: () => number,
): RefusalWatch => {
  const stop = new AbortController()
  let failure: TurnFailure | undefined
  let timer: NodeJS.Timeout | undefined
  const leave = peer.onOutput(piece => {
    const complaint = piece.split('\n').flatMap(line => complaintIn(program, line) ?? [])[0]
    const found = complaint === undefined ? undefined : refusalIn(label, complaint)
    const before = updates()
    if (!found || timer) return
    timer = setTimeout(() => {
      timer = undefined
      if (updates() !== before) return
      failure = found
      stop.abort()
    }, REFUSED_MS)
  })
  return {
    signal: stop.signal,
    get failure() {
      return failure
    },
    over: () => {
      clearTimeout(timer)
      leave()
    },
  }
}
