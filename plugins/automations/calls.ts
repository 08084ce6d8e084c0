import { refuse, type Caller, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import type { Automation, AutomationsCalls, HeldWake } from './contract.js'
import { ROUTE_WORDS } from './definitions/definitions.js'
import { firedAnswer } from './fires/releases.js'
import { assertTrigger, catalogOf, contributed, triggerProblem } from './listeners/sources.js'
import type { AutomationParts } from './parts.js'
import { automationRow } from './rows.js'
import { assertCron, nextTimes, scheduleWords } from './schedule/cron.js'
import { assertFitForStrangers, isWebchat } from './webchat/strangers.js'
import { assertChat } from './webchat/trigger-check.js'
import { widgetScript } from './webchat/widget-script.js'

const OK = { ok: true } as const
const LISTED_RUNS = 20
const PREVIEWED = 5

/** Serves the calls of the group. */
export const automationCalls = (host: Host, parts: AutomationParts): Handlers<AutomationsCalls> => {
  const { clock, definitions, switches, history, held, fires, releases, scheduler, tokens, webhooks, dispatch } = parts
  const { persona, guard, changed, sites, budgets, threads, visits } = parts
  const rows = { host, history, fires, scheduler, tokens, switches, persona }
  const widget = widgetScript(host.place.root)
  const catalog = async () => catalogOf(await contributed(host))
  const told = (type: string, id: string, context: Context, extra: object = {}) =>
    record(host, { type, audience: 'viewer', outcome: 'ok', automationIds: [id], extra: { ...extra } }, context)
  /** The webhook of an automation; refuses other triggers. */
  const webhookOf = async (id: string) => {
    const { automation } = await definitions.get(id)
    if (automation.trigger.kind !== 'event')
      refuse('conflict', `${id} has no webhook: its trigger is ${automation.trigger.kind}, expected event`)
    return tokens.of(id) ?? tokens.make(id)
  }
  const address = (id: string, { http }: Context) => `${http?.base ?? ''}/automations/${encodeURIComponent(id)}/fire`
  /** Follows a definition that was written. */
  const follow = async ({ id, trigger }: Automation): Promise<void> => {
    if (trigger.kind !== 'listener' || !isWebchat({ trigger }))
      await Promise.all([sites, budgets, threads].map(part => part.forget(id)))
    if (trigger.kind !== 'event') await tokens.forget(id)
    else if (!tokens.of(id)) await tokens.make(id)
    await scheduler.refresh()
    host.emit('automations.changed', { id })
  }
  return {
    'GET /automations': async () => {
      const [{ all, problems, wrong }, known] = await Promise.all([definitions.read(), catalog()])
      const sorted = [...all.values()].sort((one, other) => (one.automation.id < other.automation.id ? -1 : 1))
      const list = await Promise.all(sorted.map(each => automationRow(rows, each, known, { limit: LISTED_RUNS })))
      return { automations: list, problems: [...(wrong === undefined ? [] : [{ message: wrong }]), ...problems] }
    },
    'GET /automations/{id}': async ({ id, limit = 50, before }) => {
      const found = await definitions.get(id)
      const { trigger } = found.automation
      const row = await automationRow(rows, found, await catalog(), { limit, ...(before !== undefined && { before }) })
      const isChat = trigger.kind === 'listener' && isWebchat(found.automation)
      return { ...row, ...(isChat && { installs: sites.of(id, trigger.allowedOrigins) }) }
    },
    'POST /automations': async (automation, context) => {
      const { id, trigger, enabled, agent, harness, model, account } = automation
      if (ROUTE_WORDS.has(id))
        refuse('unprocessable', `id: ${id} is a word of a route: choose another`, {
          errors: [{ path: 'id', expected: 'another id' }],
        })
      assertTrigger(trigger, await catalog())
      assertChat(automation)
      await assertFitForStrangers(host, automation)
      const choice = { ...(agent !== undefined && { agent }), ...(account !== undefined && { account }) }
      await host.call('agent.assertChoice', {
        ...choice,
        ...(harness && { harness }),
        ...(model !== undefined && { model }),
      })
      await definitions.put(automation)
      if (enabled && switches.of(id).disabledBy !== undefined) await switches.on(id, clock.now())
      if (!enabled) await switches.off(id, context.caller.actor)
      await follow(automation)
      await told('automation.saved', id, context, { trigger: trigger.kind, enabled })
      changed(id)
      return OK
    },
    'GET /automations/catalog': catalog,
    'POST /automations/preview': async ({ trigger, guard: command, payload, runGuard }, { signal }) => {
      if (trigger.kind === 'schedule') assertCron(trigger)
      const problem = triggerProblem(trigger, await catalog())
      const result = runGuard && command !== undefined ? await guard(command, payload, signal) : undefined
      return {
        ...(trigger.kind === 'schedule' && {
          nextRuns: nextTimes(trigger, clock.now(), PREVIEWED),
          words: scheduleWords(trigger),
        }),
        ...(result && { guard: result }),
        ...(problem !== undefined && { problem }),
      }
    },
    'POST /automations/{id}/enabled': async ({ id, enabled }, context) => {
      await definitions.setEnabled(id, enabled)
      if (enabled) await switches.on(id, clock.now())
      else {
        await switches.off(id, context.caller.actor)
        await fires.dropQueued(id)
      }
      await scheduler.refresh()
      host.emit('automations.changed', { id })
      await told(enabled ? 'automation.enabled' : 'automation.disabled', id, context)
      changed(id)
      return OK
    },
    'DELETE /automations/{id}': async ({ id }, context) => {
      await definitions.remove(id)
      await fires.dropQueued(id)
      await held.removeOf(id)
      await Promise.all([tokens, switches, scheduler, dispatch, sites, budgets, threads].map(part => part.forget(id)))
      await history.forget(id)
      host.emit('automations.changed', { id })
      await told('automation.removed', id, context)
      changed(id)
      return OK
    },
    'POST /automations/{id}/run': async ({ id, payload }, { caller }) => {
      const { automation, accepted } = await definitions.get(id)
      if (!accepted)
        refuse('conflict', `${id} came with the code, or its file was edited: save it with POST /automations first`)
      if (automation.trigger.kind === 'listener')
        refuse('unprocessable', `${id} fires for messages of ${automation.trigger.provider}: send one`)
      const order = { cause: 'hand', by: caller.actor, approved: true } as const
      const live = await fires.accept(automation, { ...order, ...(payload !== undefined && { payload }) }, 'drop')
      if (!live) return refuse('conflict', `${id} is running: wait until it has ended`)
      return firedAnswer(await live.outcome.promise)
    },
    'POST /automations/{id}/fire': (call, context) => webhooks.fire(call, context),
    'GET /automations/{id}/token': async ({ id }, context) => {
      const { token, createdAt, lastUsedAt, lastUsedFrom } = await webhookOf(id)
      await told('automation.token_revealed', id, context)
      return {
        ...{ url: address(id, context), token, createdAt },
        ...(lastUsedAt !== undefined && { lastUsedAt }),
        ...(lastUsedFrom !== undefined && { lastUsedFrom }),
      }
    },
    'POST /automations/{id}/token/rotate': async ({ id }, context) => {
      await webhookOf(id)
      const { token, createdAt } = await tokens.make(id)
      await told('automation.token_rotated', id, context)
      changed(id)
      return { url: address(id, context), token, createdAt }
    },
    'GET /automations/pending': async (_, { caller }) => {
      const shown = held.all.map(async wake => {
        const digest = await releases.digest(wake)
        return { ...(seesPayload(caller) ? wake : withoutPayload(wake)), ...(digest !== undefined && { digest }) }
      })
      return { approvals: await Promise.all(shown) }
    },
    'POST /automations/pending/{id}/approve': async ({ id, expect }, context) => {
      const of = held.get(id)?.wake.automationId
      const answer = await releases.approve(id, context.caller.actor, expect)
      if (of !== undefined) await told('automation.approved', of, context, { id })
      return answer
    },
    'POST /automations/pending/{id}/reject': async ({ id, reason }, { caller }) => {
      await releases.reject(id, caller.actor, reason)
      return OK
    },
    'GET /webchat/widget.js': widget,
    'GET /webchat/{id}/config': ({ id }, context) => visits.config(id, context),
    'GET /webchat/{id}/challenge': ({ id, conversation }, context) => visits.challenge(id, conversation, context),
    'POST /webchat/{id}/message': (message, context) => visits.message(message, context),
    'GET /webchat/{id}/stream': (reading, context) => visits.stream(reading, context),
    'automations.chatOrigin': async ({ id, origin, asked }) => ({ verdict: await visits.origin(id, origin, asked) }),
    'automations.held': () => ({ held: held.all.map(withoutPayload) }),
    'automations.dispatch': async message => ({ matched: await dispatch.dispatch(message) }),
    'automations.dispatchStream': (message, { signal }) => dispatch.stream(message, signal),
    'automations.listening': async ({ provider }) => ({
      automations: [...(await definitions.read()).all.values()].flatMap(({ automation, accepted }) => {
        const { id, enabled, trigger } = automation
        const own = trigger.kind === 'listener' && trigger.provider === provider
        return own ? [{ id, enabled: enabled && accepted, trigger: { ...trigger } }] : []
      }),
    }),
    'automations.usedTemplates': async ({ prompts }) => {
      const all = [...(await definitions.read()).all.values()]
      return { used: prompts.map(prompt => all.filter(({ automation }) => automation.prompt === prompt).length) }
    },
  }
}

const seesPayload = ({ kind, role, scope }: Caller): boolean =>
  kind === 'token' ? scope !== 'read' : role !== 'viewer'

const withoutPayload = ({ payload: _payload, ...wake }: HeldWake): HeldWake => wake
