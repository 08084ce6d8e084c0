import { PhraseMatcher } from '../../sdk/node/access/phrase-matcher.js'
import { Budget } from '../../sdk/node/access/budget.js'
import { TokenRestorer } from '../../sdk/node/access/token-restorer.js'
import { record } from '../../sdk/node/record/record.js'
import { Refusal, refuse, type Context, type Handlers, type Host } from '../../sdk/index.js'
import type { ShieldCalls, ShieldPolicy } from './contract.js'
import { detectorEntries } from './detect/detector-catalogue.js'
import { nationalIds } from './detect/national-ids.js'
import { shieldedProviders } from './gateway/connected-providers.js'
import type { Gateway } from './gateway/gateway.js'
import { previewOf } from './gateway/preview.js'
import type { StoredSecrets } from './gateway/stored-secrets.js'
import { trustUnder } from './gateway/trust.js'
import { compiledShield, type CompiledShield } from './policy/compiled-shield.js'
import type { ShieldFile } from './policy/shield-file.js'
import { replayPast } from './replay/run-replay.js'
import { countedDay, type ShieldCounts } from './stats/shield-counts.js'
import { shieldStats, suggestionsOf } from './stats/shield-stats.js'
import type { TokenStore } from './tokens/token-store.js'
import { TokenTable } from './tokens/token-table.js'

/** The dependencies of the calls. */
export interface ShieldCallDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place' | 'log' | 'signal'>
  readonly file: ShieldFile
  readonly tokens: TokenStore
  readonly secrets: StoredSecrets
  readonly counts: ShieldCounts
  readonly gateway: Gateway
  /** Notifies watchers of a change. */
  readonly publish: (key?: string) => void
}

const MOST_TEXT = 200_000
const PREVIEWS = 60
const REPLAYS = 10
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const STATS_DAYS = 90
const USUAL_ROWS = 200
const MOST_ROWS = 1_000
/** A name that no provider has: what is shielded unless the policy trusts everybody. */
const ANY_PROVIDER = ''

/** Serves the calls of the group. */
export const shieldCalls = (deps: ShieldCallDeps): Handlers<ShieldCalls> => {
  const { host, file, tokens, secrets, counts, gateway, publish } = deps
  const previews = new Budget(PREVIEWS, Date.now, 'from one caller')
  let replays: number[] = []
  let replaying = false

  return {
    'GET /shield': async () => {
      const { policy, revision } = await file.current()
      return {
        policy: structuredClone(policy),
        revision,
        providers: await shieldedProviders(host, policy),
        detectors: detectorEntries(policy),
        nationalIds: [...nationalIds],
      }
    },
    'POST /shield': async ({ policy, revision }, context) => {
      const compiled = checkedShield(policy)
      const { revision: now } = await file.change(before => {
        if (revision !== undefined && revision !== before.revision)
          refuse('conflict', 'the policy has changed since that revision, so nothing was written: read it again')
        return compiled
      })
      publish()
      const { enabled, lists, patterns } = policy
      const extra = { enabled, lists: lists.length, patterns: patterns.length }
      await record(host, { type: 'shield.changed', extra }, context)
      return { ok: true as const, revision: now }
    },
    'POST /shield/preview': async ({ text, provider, conversationId, policy }, context) => {
      assertText(text)
      const isOwner = context.caller.role === 'owner' && context.caller.kind === 'session'
      if (policy && !isOwner) refuse('forbidden', 'only the owner may try a policy that is not saved')
      const compiled = policy ? checkedShield(policy) : await file.current()
      previews.spend(context.caller.actor)
      if (conversationId !== undefined) await assertReadable(host, conversationId, context)
      const began = performance.now()
      const table = conversationId === undefined ? new TokenTable() : await tokens.read(conversationId)
      const { stored } = isOwner ? await secrets.now() : { stored: new PhraseMatcher<string>([]) }
      const local = provider !== undefined && (await isLocal(host, provider))
      const { trust } = trustUnder(compiled.policy, { provider: provider ?? ANY_PROVIDER, local })
      const seen = provider === undefined ? 'shielded' : trust
      return {
        ...previewOf(text, seen, { compiled, stored }, table.draft(isOwner)),
        ms: Math.round((performance.now() - began) * 100) / 100,
      }
    },
    'GET /shield/conversations/{id}': async ({ id, limit = USUAL_ROWS, after }, context) => {
      await assertReadable(host, id, context)
      const { rows } = await tokens.read(id)
      const from = after === undefined ? 0 : rows.findIndex(({ token }) => token === after) + 1
      const page = rows.slice(from, from + Math.min(limit, MOST_ROWS))
      const last = page.at(-1)
      return { tokens: page, ...(last && from + page.length < rows.length && { next: last.token }) }
    },
    'DELETE /shield/conversations/{id}': async ({ id }, context) => {
      await assertIdle(host, id)
      const forgotten = await tokens.forget(id)
      gateway.drop(id)
      if (forgotten > 0) {
        publish(id)
        await record(host, { type: 'shield.forgotten', conversationId: id, extra: { forgotten } }, context)
      }
      return { ok: true as const, forgotten }
    },
    'POST /shield/restore': async ({ conversationId, text }, context) => {
      assertText(text)
      await assertReadable(host, conversationId, context)
      const table = await tokens.read(conversationId)
      const shown = (token: string): string | undefined =>
        table.detectorOf(token)?.startsWith('secret-') ? undefined : table.valueOf(token)
      const restorer = new TokenRestorer(shown)
      const done = restorer.whole(text)
      const restored = [...restorer.restored.values()].reduce((sum, count) => sum + count, 0)
      await record(host, { type: 'shield.restored', conversationId, extra: { restored } }, context)
      return { text: done, restored, unknown: [...restorer.unknown] }
    },
    'POST /shield/replay': async ({ policy, conversations }, context) => {
      checkedShield(policy)
      if (replaying) refuse('conflict', 'another replay is running: try again when it is done')
      const now = Date.now()
      replays = replays.filter(at => now - at < HOUR_MS && at <= now)
      if (replays.length >= REPLAYS)
        refuse('too-many', `expected at most ${REPLAYS} replays an hour: try again later`, {
          retryAfter: Math.ceil((replays[0]! + HOUR_MS - now) / 1_000),
        })
      replaying = true
      try {
        const { policy: saved } = await file.current()
        replays.push(now)
        return await replayPast(host, secrets, { given: policy, saved, conversations }, context)
      } finally {
        replaying = false
      }
    },
    'GET /shield/stats': async ({ from, to }, { caller }) => {
      const now = Date.now()
      const [first, last] = [assertDay(from, 'from'), assertDay(to, 'to')]
      const since = countedDay(now - STATS_DAYS * DAY_MS)
      const days = await counts.between(first ?? since, last ?? countedDay(now))
      const isShown = caller.kind !== 'token' && (caller.role === 'maintainer' || caller.role === 'owner')
      const policy = await file.outline()
      const recent = isShown ? await counts.between(since, countedDay(now)) : undefined
      return shieldStats(days, recent ? suggestionsOf(recent, policy, await file.since(), now) : [])
    },
    'shield.outbound': request => gateway.outbound(request),
    'shield.inbound': async ({ conversationId, restored, unrestored }) => {
      const total = Object.values(restored).reduce((sum, count) => sum + count, 0)
      counts.answer(total, unrestored)
      if (total > 0) await tokens.with(conversationId, async table => table.countRestored(restored))
      return { ok: true as const }
    },
    'shield.trustOf': async asked => {
      const policy = await file.outline()
      return { enabled: policy.enabled, ...trustUnder(policy, asked) }
    },
    'shield.purge': async ({ conversationId }) => {
      await tokens.purge(conversationId)
      gateway.drop(conversationId)
      return { ok: true as const }
    },
    'shield.copy': async ({ from, to }) => {
      await tokens.copy(from, to)
      return { ok: true as const }
    },
    'shield.known': async ({ conversationId }) => {
      const table = await tokens.read(conversationId)
      return { tokens: table.values.filter(({ token }) => !table.isLiteral(token)) }
    },
  }
}

/** A compiled policy; refuses one that does not compile. */
const checkedShield = (policy: ShieldPolicy): CompiledShield => {
  const compiled = compiledShield(policy)
  if (!('expected' in compiled)) return compiled
  const { path, expected, found } = compiled
  return refuse('invalid', `${path}: expected ${expected}, found ${found.slice(0, 200)}`, {
    errors: [{ path, expected, value: found.slice(0, 200) }],
  })
}

const assertText = (text: string): void => {
  if (text === '') refuse('invalid', 'text: expected at least one character, found none')
  if (text.length > MOST_TEXT)
    refuse('too-large', `text: expected at most ${MOST_TEXT} characters, found ${text.length}`)
}

const assertDay = (day: string | undefined, field: string): string | undefined => {
  if (day === undefined) return undefined
  const at = Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(at) || countedDay(at) !== day)
    refuse('invalid', `${field}: expected a date such as 2026-11-28, found ${day}`)
  return day
}

/** Refuses a conversation that the caller may not read, as one that does not exist. */
const assertReadable = async (host: ShieldCallDeps['host'], id: string, context: Context): Promise<void> => {
  const missing = () => refuse('not-found', `there is no conversation ${JSON.stringify(id)}`)
  if (!(await host.serves('agent.record'))) return missing()
  await host.call('agent.record', { id, limit: 1 }, { as: context }).catch((error: unknown) => {
    if (Refusal.from(error).reason === 'not-found') return missing()
    throw error
  })
}

const assertIdle = async (host: ShieldCallDeps['host'], id: string): Promise<void> => {
  if (!(await host.serves('agent.conversation'))) return
  const state = await host.call('agent.conversation', { id }).catch((error: unknown) => {
    // A conversation of which only the record is left runs nothing.
    if (Refusal.from(error).reason === 'not-found') return undefined
    throw error
  })
  if (state?.live) refuse('conflict', 'a turn is running in it: stop it or wait for its end')
}

const isLocal = async (host: ShieldCallDeps['host'], provider: string): Promise<boolean> => {
  if (!provider.startsWith('endpoint/') || !(await host.serves('capabilities.records'))) return false
  const { capabilities } = await host.call('capabilities.records', { kind: 'localmodel' })
  return capabilities.some(({ id }) => `endpoint/${id}` === provider)
}
