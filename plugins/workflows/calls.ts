import { refuse, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { limitsOf } from '../../sdk/node/access/access-view.js'
import { digest, type FirstAnswers } from '../../sdk/node/access/first-answers.js'
import type { OwnTokens } from '../../sdk/node/access/own-tokens.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { record } from '../../sdk/node/record/record.js'
import type { Workflow, WorkflowRow, WorkflowsCalls } from './contract.js'
import type { Designs } from './designs/designs.js'
import type { DayCounts } from './gate/day-counts.js'
import { USUAL_DAILY, type Gates } from './gate/gates.js'
import { archiveRun, unarchiveRun } from './runs/archive.js'
import type { Runs } from './runs/runs.js'
import { cardWorkflow, runIdOf, shownRun, type StoredRun } from './runs/stored-run.js'
import { assertStarts } from './starts.js'

const OK = { ok: true } as const
const ROW_RUNS = 20
const LISTED = 50

/** The dependencies of the calls. */
export interface WorkflowsCallsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly designs: Designs
  readonly runs: Runs
  readonly gates: Gates
  readonly tokens: OwnTokens
  readonly counts: DayCounts
  /** The run of each `messageId`. */
  readonly messages: FirstAnswers<{ readonly runId: string }>
  /** Notifies clients that something changed. */
  readonly changed: (key: string) => void
}

/** Serves the calls of the group. */
export const workflowsCalls = (deps: WorkflowsCallsDeps): Handlers<WorkflowsCalls> => {
  const { host, designs, runs, gates, tokens, counts, messages, changed } = deps
  const saves = new KeyedMutex()
  const told = (type: string, extra: object, context: Context) =>
    record(host, { type, audience: 'viewer', outcome: 'ok', extra: { ...extra } }, context)
  /** The runs that the caller may see: all conversations of them must be inside a limited caller's areas. */
  const visible = async (all: readonly StoredRun[], context: Context): Promise<readonly StoredRun[]> => {
    if (limitsOf(context.caller) === undefined) return all
    const begun = (run: StoredRun) => run.steps.filter(({ startedAt }) => startedAt !== undefined)
    const ids = [...new Set(all.flatMap(run => begun(run).map(({ conversationId }) => conversationId)))]
    const seen = new Set((await host.call('agent.visible', { ids }, { as: context })).ids)
    return all.filter(run => begun(run).length > 0 && begun(run).every(step => seen.has(step.conversationId)))
  }
  const seenRun = async (runId: string, context: Context): Promise<StoredRun> => {
    await runs.recovered
    const [run] = await visible([runs.get(runId)], context)
    return run ?? refuse('not-found', `there is no run ${JSON.stringify(runId.slice(0, 64))}`)
  }
  const row = (workflow: Workflow, all: readonly StoredRun[]): WorkflowRow => {
    const own = all.filter(run => run.workflow.id === workflow.id).slice(0, ROW_RUNS)
    const token = workflow.gate && tokens.of(workflow.id)
    return { ...workflow, runs: own.map(run => shownRun(run)), ...(token && { gateTokenAt: token.createdAt }) }
  }
  /** The design of a gate with its token. */
  const gateOf = async (id: string) => {
    const { gate } = await designs.get(id)
    if (!gate) return refuse('not-found', `the workflow ${id} has no gate`)
    return { gate, token: tokens.of(id) ?? (await tokens.make(id)) }
  }
  const address = (id: string, { http }: Context) => `${http?.base ?? ''}/workflows/${encodeURIComponent(id)}/gate`
  const start = async (
    workflow: Workflow,
    request: string | undefined,
    messageKey: string | undefined,
    context: Context,
  ) => {
    const begins = await assertStarts(host, designs, workflow, request)
    return runs.begin(
      {
        ...{ workflow, ...begins, startedBy: context.caller.actor },
        ...(messageKey !== undefined && { messageKey }),
      },
      context,
    )
  }

  return {
    'GET /workflows': async (_, context) => {
      const { entries, problems, wrong } = await designs.read()
      const all = await visible(runs.all, context)
      return {
        workflows: entries.map(workflow => row(workflow, all)),
        problems: [...(wrong === undefined ? [] : [{ message: wrong }]), ...problems],
      }
    },
    'POST /workflows': ({ workflow, create }, context) =>
      saves.with(workflow.id, async () => {
        const { id, name, gate } = workflow
        const before = create ? undefined : await designs.find(id)
        await designs.put(workflow, create)
        if (!gate) await tokens.forget(id)
        // A new gate has a new token, whatever a crash left behind.
        else if (!before?.gate || !tokens.of(id)) await tokens.make(id)
        await told('workflow.saved', { workflow: id, name, gate: gate !== undefined }, context)
        changed(id)
        return row(workflow, await visible(runs.all, context))
      }),
    'DELETE /workflows/{id}': ({ id }, context) =>
      saves.with(id, async () => {
        await designs.remove(id)
        await tokens.forget(id)
        await told('workflow.removed', { workflow: id }, context)
        changed(id)
        return OK
      }),
    'POST /workflows/{id}/run': async ({ id, request, messageId }, context) => {
      if (limitsOf(context.caller) !== undefined)
        refuse('forbidden', 'a run works in the whole workspace: it takes a caller who is not limited to areas')
      await runs.recovered
      const workflow = await designs.get(id)
      if (messageId === undefined) return shownRun(await start(workflow, request, undefined, context))
      const key = digest('message', id, messageId)
      return saves.with(key, async () => {
        const known = messages.of(key)
        if (known) {
          const run = runs.find(known.runId)
          return run
            ? shownRun(run)
            : refuse('conflict', `the run ${known.runId} of this messageId was forgotten: use a new one`)
        }
        const run = await start(workflow, request, key, context)
        await messages.keep(key, { runId: run.runId })
        return shownRun(run)
      })
    },
    'GET /workflows/runs': async ({ workflow, state, archived, limit = LISTED, before = Infinity }, context) => {
      await runs.recovered
      const fits = runs.all.filter(
        run =>
          run.startedAt < before
          && (workflow === undefined || run.workflow.id === workflow)
          && (state === undefined || run.state === state)
          && (archived === undefined || (run.archivedAt !== undefined) === archived),
      )
      return { runs: (await visible(fits, context)).slice(0, limit).map(run => shownRun(run)) }
    },
    'GET /workflows/runs/{runId}': async ({ runId }, context) => {
      const run = await seenRun(runId, context)
      return shownRun(run, await runs.results(run))
    },
    'POST /workflows/runs/{runId}/stop': async ({ runId }, context) => {
      const { workflow, state } = await seenRun(runId, context)
      if (state !== 'running') return OK
      await runs.stop(runId, context)
      await told('workflow.stopped', { run: runId, workflow: workflow.id }, context)
      return OK
    },
    'POST /workflows/runs/{runId}/archive': async ({ runId }, context) => {
      await archiveRun(host, runs, await seenRun(runId, context), context)
      return OK
    },
    'POST /workflows/runs/{runId}/unarchive': async ({ runId }, context) => {
      await unarchiveRun(host, runs, await seenRun(runId, context), context)
      return OK
    },
    'POST /workflows/{id}/gate': async (call, context) => {
      await runs.recovered
      const verdict = await gates.ask(call, context)
      const { outcome, step, runId, reason } = verdict
      await told(
        'workflow.gate',
        { workflow: call.id, run: runId, outcome, step, reason: reason.slice(0, 500) },
        context,
      )
      return verdict
    },
    'GET /workflows/{id}/gate': async ({ id }, context) => {
      const { gate, token } = await gateOf(id)
      await told('workflow.gate_revealed', { workflow: id }, context)
      return {
        ...{ url: address(id, context), token: token.token, createdAt: token.createdAt },
        ...(token.lastUsedAt !== undefined && { lastUsedAt: token.lastUsedAt }),
        ...{ usedToday: counts.of(id), dailyMax: gate.dailyMax ?? USUAL_DAILY },
      }
    },
    'POST /workflows/{id}/gate/rotate': async ({ id }, context) => {
      await gateOf(id)
      const { token, createdAt } = await tokens.make(id)
      await told('workflow.gate_rotated', { workflow: id }, context)
      changed(id)
      return { url: address(id, context), token, createdAt }
    },
    'workflows.cards': ({ ids }) => ({
      workflows: Object.fromEntries(
        ids.flatMap(id => {
          const run = runs.find(runIdOf(id) ?? '')
          const card = run && cardWorkflow(run, id)
          return card ? [[id, card]] : []
        }),
      ),
    }),
  }
}
