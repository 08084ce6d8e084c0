import { randomUUID } from 'node:crypto'
import type { CardLoop } from '../agent/contract.js'
import { loopFile } from './documents.js'
import type { Loop, LoopStart, OwnedLoop, OwnedLoopInput } from './contract.js'

/** The round in hand. */
export interface RoundInHand {
  readonly n: number
  readonly run: string
  readonly messageId: string
  /** The hash of the tree before it; left out: there was none. */
  readonly before?: string
  /** What the conversation had cost before it. */
  readonly spentBefore: number
  /** A call starts it and has not answered yet: a restart forgets the loop unless the message was accepted. */
  readonly asked?: true
}

/** A loop as it is stored. */
export interface StoredLoop extends Loop {
  /** Who started it may land. */
  readonly lands: boolean
  readonly round?: RoundInHand
  /** Stands before the words of the next round. */
  readonly note?: string
  /** It ends with the round in hand. */
  readonly stopping?: true
  /** The ended loop that it replaces, until its first round was accepted. */
  readonly replaces?: StoredLoop
  /** Its rounds before it was resumed, which do not count as stalled. */
  readonly stallFrom?: number
  /** The last thing the agent said. */
  readonly report?: string
  /** What another group drives it for. */
  readonly owner?: string
  /** The title of the conversation that it opens; its goal unless set. */
  readonly title?: string
  /** What follows the prompt in each round. */
  readonly handed?: string
}

/** A loop that was just started. */
export const begunLoop = (
  start: LoopStart | Omit<OwnedLoopInput, 'startedBy'>,
  by: Pick<StoredLoop, 'startedBy' | 'startedAt' | 'lands'>,
): StoredLoop => ({
  ...start,
  ...by,
  state: 'running',
  resumed: 0,
  costUsd: 0,
  iterations: [],
})

/** A new round: the id of its message and of its run are known before it is accepted. */
export const newRound = (n: number, more: Omit<RoundInHand, 'n' | 'run' | 'messageId'>): RoundInHand => ({
  ...{ n, run: minted('r'), messageId: minted('l') },
  ...more,
})

const minted = (letter: string): string => `${letter}-${randomUUID().replaceAll('-', '').slice(0, 20)}`

/** A loop as callers see it, with its last rounds. */
export const shownLoop = (loop: StoredLoop, rounds = Infinity): Loop => {
  const { lands: _lands, round: _round, note: _note, stopping: _stopping, report: _report, ...rest } = loop
  const { replaces: _replaces, stallFrom: _from, owner: _owner, title: _title, handed: _handed, ...shown } = rest
  return structuredClone({ ...shown, iterations: shown.iterations.slice(-rounds) })
}

/** A loop as the group that drives it reads it. */
export const ownedLoop = (loop: StoredLoop): OwnedLoop => ({
  loop: shownLoop(loop),
  ...(loop.report !== undefined && { report: loop.report }),
  ...(loop.iterations.at(-1)?.document && { documentPath: loopFile(loop.conversationId) }),
})

/** Whether only its turn says that a loop is done. */
export const isUnverified = ({ output, checks }: Pick<StoredLoop, 'output' | 'checks'>): boolean =>
  output.kind === 'none' && checks.length === 0

/** A loop as the card of its conversation shows it. */
export const cardLoop = ({ state, iterations, round, maxIterations, goal }: StoredLoop): CardLoop => ({
  ...{ state, iteration: round?.n ?? iterations.length, maxIterations, goal },
})

/** Whether so many rounds in a row left the tree unchanged. */
export const isStalled = ({ iterations, stallLimit, stallFrom = 0 }: StoredLoop): boolean =>
  iterations.length - stallFrom >= stallLimit && iterations.slice(-stallLimit).every(({ changed }) => !changed)

/** Why no round fits into the ceilings; undefined: one does. */
export const noRoom = ({
  iterations,
  maxIterations,
  maxSpendUsd,
  costUsd,
}: StoredLoop): { readonly state: 'exhausted' | 'overspent'; readonly detail: string } | undefined => {
  if (iterations.length >= maxIterations)
    return { state: 'exhausted', detail: `${maxIterations} rounds did not meet the goal` }
  if (maxSpendUsd !== undefined && costUsd >= maxSpendUsd)
    return { state: 'overspent', detail: `its rounds cost ${costUsd} USD, at most ${maxSpendUsd} were allowed` }
  return undefined
}
