import type { Host } from '../../sdk/index.js'
import { FirstAnswers } from '../../sdk/node/access/first-answers.js'
import { OwnTokens } from '../../sdk/node/access/own-tokens.js'
import { sendPush } from '../../sdk/node/push/send-push.js'
import { promptWords } from '../../sdk/node/push/words.js'
import { workNetwork } from '../../sdk/node/programs/work-network.js'
import { record } from '../../sdk/node/record/record.js'
import type { HeldWake, WebhookFired } from './contract.js'
import { DefinitionFile } from './definitions/definitions.js'
import { Switches } from './definitions/switches.js'
import { fireChecks } from './fires/checks.js'
import type { Fire } from './fires/fire.js'
import { FIRE_KEY, Fires } from './fires/fires.js'
import { runGuard } from './fires/guard.js'
import { HeldWakes } from './fires/held-wakes.js'
import { FireRecorder } from './fires/recorder.js'
import { Releases } from './fires/releases.js'
import { RunHistory } from './fires/run-history.js'
import { agentTurns } from './fires/turns.js'
import { Dispatch } from './listeners/dispatch.js'
import { systemClock, type FireClock } from './schedule/clock.js'
import { Scheduler } from './schedule/scheduler.js'
import { VisitAnswers } from './webchat/answers.js'
import { VisitorBudgets } from './webchat/budgets.js'
import { Challenges } from './webchat/challenges.js'
import { ChatSites } from './webchat/sites.js'
import { strangerProblem } from './webchat/strangers.js'
import { VisitorThreads } from './webchat/threads.js'
import { Visits } from './webchat/visits.js'
import { Webhooks } from './webhooks/webhooks.js'
import { WorkspaceEvents } from './workspace-events.js'

/** The parts of the group, which share its store. */
export interface AutomationParts {
  readonly clock: FireClock
  readonly definitions: DefinitionFile
  readonly switches: Switches
  readonly history: RunHistory
  readonly held: HeldWakes
  readonly fires: Fires
  readonly releases: Releases
  readonly scheduler: Scheduler
  readonly tokens: OwnTokens
  readonly webhooks: Webhooks
  readonly dispatch: Dispatch
  readonly sites: ChatSites
  readonly budgets: VisitorBudgets
  readonly threads: VisitorThreads
  readonly visits: Visits
  readonly events: WorkspaceEvents
  /** Whether there is a persona; without the group there is none to miss. */
  readonly persona: (id: string) => Promise<boolean>
  readonly guard: (command: string, payload: string | undefined, signal: AbortSignal) => ReturnType<typeof runGuard>
  /** Notifies clients that an automation changed. */
  readonly changed: (id: string) => void
  /** Reads everything that is stored. */
  load(): Promise<Fire[]>
}

/** Makes the parts of the group. */
export const automationParts = (host: Host, clock: FireClock = systemClock): AutomationParts => {
  const { store, log, place, signal } = host
  const failed = (what: string) => (error: unknown) =>
    void (signal.aborted || log.warn(`${what} failed`, { error: error instanceof Error ? error.stack : String(error) }))
  const settings = async () => ((await host.serves('settings.get')) ? host.call('settings.get') : undefined)
  const changed = (id: string) => {
    host.call('kernel.events.publish', { domain: 'automations', key: id }).catch(failed('publishing a change'))
  }
  const heldChanged = (id: string) => {
    host.emit('automations.held', { waiting: held.all.length })
    changed(id)
  }
  const persona = async (id: string) =>
    !(await host.serves('personas.forTurn')) || (await host.call('personas.forTurn', { actsAs: id })).known
  const guard: AutomationParts['guard'] = (command, payload, aborted) =>
    runGuard(place, command, payload, { signal: aborted, network: workNetwork(host) })
  const definitions = new DefinitionFile(place.workspace, store)
  const definition = async (id: string) => (await definitions.read()).all.get(id)
  const switches = new Switches(store)
  const history = new RunHistory(host.journal, log)
  const tokens = new OwnTokens(store, clock.now)
  const answers = new FirstAnswers<WebhookFired>(store, clock.now)
  const turns = agentTurns(host)
  const told = ({ id, automationId, reason, autoRunAt, title = automationId }: HeldWake) => {
    if (autoRunAt === undefined)
      void sendPush(host, { moment: 'approval', approvalId: id, text: `Run the automation ${promptWords(title)}` })
    void record(host, {
      ...{ type: 'automation.pending', audience: 'viewer', outcome: 'ok', automationIds: [automationId] },
      extra: { id, reason: reason.slice(0, 500), ...(autoRunAt !== undefined && { autoRunAt }) },
    })
  }
  const held: HeldWakes = new HeldWakes({
    ...{ clock, store, changed: heldChanged, held: told },
    due: id => void releases.due(id).catch(failed('running a held wake')),
  })
  const erred = async (id: string) => {
    const { automationFailureLimit: limit = 0 } = (await settings()) ?? {}
    if (limit === 0 || history.failures(id, switches.of(id).since ?? 0) < limit) return
    if (!(await definition(id))?.automation.enabled) return
    await switches.off(id, 'failures')
    await definitions.setEnabled(id, false)
    await scheduler.refresh()
    await record(host, {
      ...{ type: 'automation.disabled', audience: 'viewer', outcome: 'ok', automationIds: [id] },
      extra: { by: 'failures' },
    })
    changed(id)
  }
  const recorder = new FireRecorder({
    ...{ host, history, now: clock.now, erred },
    answered: async ({ once, conversationId, run }) => {
      if (once !== undefined && !answers.of(once)) await answers.keep(once, { ok: true, conversationId, run })
    },
    replied: (fire, end) => dispatch.replied(fire, end),
    rejected: async ({ wake, order }) => {
      if (order.visit) await visitAnswers.rejected(wake.automationId, order.visit)
    },
  })
  const checks = fireChecks({
    ...{ now: clock.now, persona, guard },
    stranger: automation => strangerProblem(host, automation),
    admit: async source =>
      (await host.serves('safety.admit'))
        ? (await host.call('safety.admit', { source })).verdict
        : ((await settings())?.admission[source] ?? 'allow'),
  })
  const fires: Fires = new Fires({
    ...{ clock, store, log, turns, checks, recorder, held, definition, changed, signal },
    follow: live => visitAnswers.follow(live),
  })
  const releases: Releases = new Releases({ held, fires, recorder, turns, definition })
  const scheduler: Scheduler = new Scheduler({
    ...{ clock, store, log, changed },
    definitions: () => definitions.read(),
    busy: id => fires.busy(id),
    fire: async (automation, slot) => {
      const live = await fires.accept(automation, { cause: 'schedule', slot }, 'drop')
      return live && { done: live.over.promise }
    },
  })
  const dispatch: Dispatch = new Dispatch({ host, store, definitions: () => definitions.read(), fires, held, answers })
  const now = clock.now
  const sites = new ChatSites({ store, now, seen: changed })
  const budgets = new VisitorBudgets(store, now)
  const threads = new VisitorThreads({ now, store, journal: host.journal })
  const visitAnswers: VisitAnswers = new VisitAnswers({ host, now, definition, threads, fires, held })
  const visits = new Visits({
    ...{ host, clock, definition, fires, threads, sites, budgets, answers: visitAnswers },
    challenges: new Challenges(now),
  })
  const webhooks = new Webhooks({ now: clock.now, tokens, answers, fires, held, definition })
  const events = new WorkspaceEvents({ host, definitions: () => definitions.read(), fires })
  return {
    ...{ clock, definitions, switches, history, held, fires, releases, scheduler, tokens, webhooks, dispatch, events },
    ...{ sites, budgets, threads, visits },
    ...{ persona, guard, changed },
    load: async () => {
      const documents = await store.all<unknown>()
      await history.load()
      for (const part of [switches, tokens, answers, dispatch, sites, budgets, threads]) part.load(documents)
      const stored = documents.flatMap(([key, value]) => (key.startsWith(FIRE_KEY) ? [value as Fire] : []))
      await held.load(documents, stored)
      const times = Map.groupBy(
        stored.filter(({ slot }) => slot !== undefined),
        ({ automationId }) => automationId,
      )
      scheduler.load(documents, new Map([...times].map(([id, all]) => [id, all.map(({ slot }) => slot!)])))
      const left = stored.filter(({ id }) => !held.isHeld(id))
      for (const { id } of stored.filter(one => held.isHeld(one.id))) await store.delete(FIRE_KEY + id)
      const order = ({ phase, at }: Fire) => (phase === 'queued' ? at : 0)
      return left.sort((one, other) => order(one) - order(other))
    },
  }
}
