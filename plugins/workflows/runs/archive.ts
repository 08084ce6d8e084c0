import { refuse, Refusal, type Context, type Host } from '../../../sdk/index.js'
import type { Runs } from './runs.js'
import type { StoredRun } from './stored-run.js'

type ArchiveHost = Pick<Host, 'call'>

/** Archives a run that has ended with the conversations of its steps. */
export const archiveRun = async (
  host: ArchiveHost,
  runs: Pick<Runs, 'archive'>,
  run: StoredRun,
  context: Context,
): Promise<void> => {
  const { runId, state, archivedAt } = run
  if (state === 'running') refuse('conflict', `the run ${runId} is going: stop it first`)
  if (archivedAt !== undefined) return
  const ids = await conversationsOf(host, run, false)
  if (ids.length > 0) {
    const { failed = [] } = await host.call('POST /agents/archive', { ids }, { as: context })
    const [first] = failed
    if (first) refuse('conflict', `the conversation ${first.id} could not be archived: ${first.message}`)
  }
  await runs.archive(runId, Date.now())
}

/** Brings an archived run and its conversations back. */
export const unarchiveRun = async (
  host: ArchiveHost,
  runs: Pick<Runs, 'archive'>,
  run: StoredRun,
  context: Context,
): Promise<void> => {
  const { runId, archivedAt, steps } = run
  if (archivedAt === undefined) return
  const gone = steps.find(step => step.gone)
  if (gone) refuse('conflict', `the conversation ${gone.conversationId} was deleted for good`)
  const ids = await conversationsOf(host, run, true)
  if (ids.length > 0) await host.call('POST /agents/unarchive', { ids }, { as: context })
  await runs.archive(runId, undefined)
}

/** The conversations of a run that are in the archive, or on the board. */
const conversationsOf = async (host: ArchiveHost, { steps }: StoredRun, archived: boolean): Promise<string[]> => {
  const begun = steps.filter(({ startedAt }) => startedAt !== undefined).map(({ conversationId }) => conversationId)
  const found = await Promise.all(
    [...new Set<string>(begun)].map(async id => {
      const state = await host.call('agent.conversation', { id }).catch((error: unknown) => {
        if (Refusal.from(error).reason === 'not-found') return undefined
        throw error
      })
      return state && (state.conversation.archivedAt !== undefined) === archived ? [id] : []
    }),
  )
  return found.flat()
}
