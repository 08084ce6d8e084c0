import { setTimeout as delay } from 'node:timers/promises'
import type { Host, Journals } from '../../../../sdk/index.js'
import { pruneHomes } from '../../../../sdk/node/wall/home.js'
import type { OpenCards } from '../../cards/cards.js'
import type { AutoLand } from '../../conversations/auto-land.js'
import type { Eraser } from '../../conversations/eraser.js'
import type { Forks } from '../../conversations/forks.js'
import { recoverRewinds, type RewindDeps } from '../../conversations/rewind.js'
import type { Providers } from '../../providers/providers.js'
import type { Records } from '../../records/records.js'
import type { StoredValues } from '../../secrets/stored-values.js'
import type { SubagentArchive } from '../../subagents/archive.js'
import type { Engine } from '../engine.js'
import type { Turn } from '../turn.js'
import type { LocalTurnEnvironment } from '../environment/local-environment.js'
import type { ConversationNetworks } from '../environment/networks.js'
import type { PlannedResumes } from './planned-resumes.js'
import { restart, sweep } from './recovery.js'

const PATIENCE_MS = 2_000

/** Everything that a killed daemon may have left half-done. */
export interface RecoverTurnsDeps extends Omit<RewindDeps, 'engine' | 'journal'> {
  readonly journal: Journals
  readonly engine: Engine
  readonly cards: OpenCards
  readonly eraser: Eraser
  readonly forks: Forks
  readonly records: Records
  readonly providers: Providers
  readonly networks: ConversationNetworks
  readonly environment: LocalTurnEnvironment
  readonly landing: AutoLand
  readonly resumes: PlannedResumes
  readonly archive: SubagentArchive
  readonly stored: StoredValues
  /** The data folder. */
  readonly data: string
  /** Ends the terminal that a turn handed over. */
  readonly endTerminal: (conversationId: string) => void
  /** Tells the budgets what a turn that goes on has used. */
  readonly spent: (turn: Turn) => Promise<void>
  /** Whether interrupted turns resume without being asked (`autoResumeOnRestart`). */
  readonly autoResume: () => Promise<boolean>
}

/** Finishes what the last daemon left half-done, and resumes its turns. */
export const recoverTurns = async (deps: RecoverTurnsDeps): Promise<void> => {
  const { conversations, copies, environment, landing, providers } = deps
  await Promise.all([copies.sweep(), deps.networks.sweep()])
  await deps.eraser.recover()
  await recoverRewinds(deps)
  await deps.forks.recover()
  await deps.records.recover()
  await deps.stored.refresh()
  await providers.recover(providersOf(deps))
  await restart({
    ...deps,
    resumes: deps.autoResume,
    sweep: (id, paths) => environment.sweep(conversations.get(id), paths),
    lands: (id, input) => landing.isPossible(id, input),
  })
  deps.resumes.begin()
}

/** The providers of turns that go on, or start with the daemon. */
const providersOf = ({ conversations, queue }: Pick<RecoverTurnsDeps, 'conversations' | 'queue'>): string[] => {
  const messages = [
    ...queue.busy.flatMap(id => [queue.current(id) ?? [], queue.waiting(id)].flat()),
    ...queue.resumables.map(([, { message }]) => message),
  ]
  return messages.flatMap(
    ({ conversationId, input }) => input.agent ?? conversations.find(conversationId)?.provider ?? [],
  )
}

interface LeftoverDeps extends Pick<
  RecoverTurnsDeps,
  'archive' | 'conversations' | 'copies' | 'data' | 'engine' | 'environment' | 'journal'
> {}

/**
 * Removes what no conversation needs any more once the daemon is ready, because no call waits for it. A stop waits for
 * it for 2 s; the next start repeats it.
 */
export const removeLeftovers = (host: Pick<Host, 'log' | 'on' | 'signal' | 'stopping'>, deps: LeftoverDeps): void => {
  let removed = Promise.resolve()
  const failed = (error: unknown) => {
    if (!host.signal.aborted) host.log.error('removing leftovers of the last run failed', { error: String(error) })
  }
  const remove = async () => {
    await leftoversRemoved(deps)
    // A copy that begins during a stop would be left half-made.
    if (!deps.engine.closing && deps.conversations.all.some(({ branch }) => branch)) void deps.environment.warm()
  }
  host.on('daemon.ready', () => (removed = remove().catch(failed)))
  host.stopping(() => Promise.race([removed, delay(PATIENCE_MS, undefined, { ref: false })]))
}

/** Turns run meanwhile. */
const leftoversRemoved = async (deps: LeftoverDeps): Promise<void> => {
  const { archive, conversations, copies, data } = deps
  await copies.prune(id => conversations.find(id)?.branch !== undefined)
  await pruneHomes(
    data,
    id => conversations.known(id),
    folder => copies.throwAway(folder),
  )
  await sweep(deps)
  await archive.sweep()
}
