import type { Journals } from '../../../../sdk/index.js'
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
import { restart } from './recovery.js'

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

/** Finishes what the last daemon left half-done, resumes its turns, and removes what no conversation needs any more. */
export const recoverTurns = async (deps: RecoverTurnsDeps): Promise<void> => {
  const { conversations, copies, data, environment, landing, log, providers } = deps
  await Promise.all([copies.sweep(), deps.networks.sweep()])
  await deps.eraser.recover()
  await recoverRewinds(deps)
  await deps.forks.recover()
  await deps.records.recover()
  await deps.stored.refresh()
  for (const id of new Set(conversations.all.map(({ provider }) => provider)))
    await providers.refresh(id).catch(error => log.warn('refreshing a provider failed', { id, error: String(error) }))
  await restart({
    ...deps,
    resumes: deps.autoResume,
    sweep: (id, paths) => environment.sweep(conversations.get(id), paths),
    lands: (id, input) => landing.isPossible(id, input),
  })
  deps.resumes.begin()
  const isolated = conversations.all.filter(({ branch }) => branch).map(({ id }) => id)
  await copies.prune(isolated)
  await pruneHomes(
    data,
    conversations.all.map(({ id }) => id),
    folder => copies.throwAway(folder),
  )
  await deps.archive.sweep()
  if (isolated.length) void environment.warm()
}
