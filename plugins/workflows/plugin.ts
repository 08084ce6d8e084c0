import type { Contract, Host } from '../../sdk/index.js'
import { recordingLimits } from '../../sdk/node/record/limited.js'
import { FirstAnswers } from '../../sdk/node/access/first-answers.js'
import { OwnTokens } from '../../sdk/node/access/own-tokens.js'
import { workflowsCalls } from './calls.js'
import { workflowsContract, type WorkflowsCalls } from './contract.js'
import { Designs, WORKFLOWS_FILE } from './designs/designs.js'
import { faultsOf } from './designs/faults.js'
import { examples } from './examples.js'
import { DayCounts } from './gate/day-counts.js'
import { Gates, type GateAnswer } from './gate/gates.js'
import { Runs } from './runs/runs.js'

export const contract: Contract<WorkflowsCalls> = { ...workflowsContract, examples }

const MONTH_MS = 30 * 24 * 3_600_000

/** Serves designs of conversations that run in order. */
export const activate = async (host: Host): Promise<void> => {
  const { store, place } = host
  const now = Date.now
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.error(`${what} failed`, { error: String(error) }))
  const changed = (key: string) =>
    void host.call('kernel.events.publish', { domain: 'workflows', key }).catch(failed('publishing a change'))
  const designs = new Designs(place.workspace, store)
  const tokens = new OwnTokens(store, now)
  const counts = new DayCounts(store, now)
  const answers = new FirstAnswers<GateAnswer>(store, now)
  const messages = new FirstAnswers<{ readonly runId: string }>(store, now, 'message/', MONTH_MS)
  const runs = new Runs({ host, changed })
  const documents = await store.all<unknown>()
  for (const part of [tokens, counts, answers, messages, runs]) part.load(documents)
  // A crash may have come between a run and the answer to its key.
  for (const { runId, gateKey, messageKey } of runs.all) {
    if (gateKey !== undefined && !answers.of(gateKey)) await answers.keep(gateKey, { runId })
    if (messageKey !== undefined && !messages.of(messageKey)) await messages.keep(messageKey, { runId })
  }
  host.on('loop.changed', ({ conversationId }) => runs.loopChanged(conversationId))
  host.on('conversation.gone', ({ conversationId, how }) => {
    if (how === 'purged') void runs.gone(conversationId).catch(failed('forgetting a run'))
  })
  host.boot('Workflows', () => designs.sweep().catch(failed('removing leftover files')))
  host.on('daemon.ready', () => void runs.recover().catch(failed('going on with runs')))

  host.contribute('system.manifestProblems', async () => {
    const { entries, problems, wrong } = await designs.read()
    const waiting = await Promise.all(entries.map(async each => ((await designs.isAccepted(each)) ? [] : [each])))
    return [
      {
        path: WORKFLOWS_FILE,
        problems: [
          ...(wrong === undefined ? [] : [{ kind: 'unreadable' as const, detail: wrong }]),
          ...problems.map(({ id, message }) => ({ kind: 'invalidEntry' as const, detail: `${id}: ${message}` })),
          ...entries.flatMap(each =>
            faultsOf(each).map(({ path, expected }) => ({
              kind: 'invalidEntry' as const,
              detail: `${each.id}: ${path}: expected ${expected}`,
            })),
          ),
          ...waiting.flat().map(({ id }) => ({
            kind: 'unaccepted' as const,
            detail: `${id}: it runs once a maintainer has saved it (sandbox workflows save)`,
          })),
        ],
      },
    ]
  })
  host.contribute('personas.pointers', async () =>
    (await designs.read()).entries.flatMap(({ id, name, steps }) => {
      const worn = new Set(steps.flatMap(({ actsAs }) => (actsAs === undefined ? [] : [actsAs])))
      return [...worn].map(persona => ({ kind: 'workflow' as const, id, label: name, persona }))
    }),
  )

  const gates = new Gates({ host, now, designs, runs, tokens, counts, answers })
  const handlers = workflowsCalls({ host, designs, runs, gates, tokens, counts, messages, changed })
  await host.serve(workflowsContract, recordingLimits(host, ['POST /workflows/{id}/gate'], handlers))
}
