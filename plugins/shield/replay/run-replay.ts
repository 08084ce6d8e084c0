import { Refusal, refuse, type Context, type Host } from '../../../sdk/index.js'
import { inThread } from '../../../sdk/node/concurrency/in-thread.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import type { ShieldPolicy, ShieldReplay } from '../contract.js'
import type { StoredSecrets } from '../gateway/stored-secrets.js'
import { trustUnder } from '../gateway/trust.js'
import type { ReplayedPolicies, SentConversation } from './replay-policies.js'

const WORKER = programFile('plugins/shield/replay/shield-replay-worker.js')
const MOST_CHARACTERS = 20 * 1024 * 1024
const LONGEST_MS = 60_000
const USUAL = 20

/** What is replayed. */
export interface AskedReplay {
  readonly given: ShieldPolicy
  readonly saved: ShieldPolicy
  /** Left out: the newest 20. */
  readonly conversations?: readonly string[] | undefined
}

/** Compares two policies over what past conversations sent, in a thread of its own. */
export const replayPast = async (
  host: Pick<Host, 'call' | 'serves' | 'signal'>,
  secrets: StoredSecrets,
  { given, saved, conversations: named }: AskedReplay,
  context: Context,
): Promise<ShieldReplay> => {
  const until = performance.now() + LONGEST_MS
  const { phrases } = await secrets.now()
  const names = named ?? (await newest(host, context))
  const conversations: SentConversation[] = []
  let [characters, more] = [0, false]
  for (const id of names) {
    const sent = await sentOf(host, id, context)
    const { provider, account, local } = sent
    const trust = (policy: ShieldPolicy) => trustUnder(policy, { provider, account, local }).trust
    const texts = sent.texts.filter(({ text }) => {
      const fits = characters + text.length <= MOST_CHARACTERS
      if (fits) characters += text.length
      else more = true
      return fits
    })
    conversations.push({ id, provider, requests: sent.requests, texts, was: trust(saved), now: trust(given) })
  }
  const longestMs = Math.max(1, Math.round(until - performance.now()))
  const asked: ReplayedPolicies = { given, saved, stored: phrases, conversations, more, longestMs }
  return inThread(WORKER, { data: asked, signal: host.signal })
}

const newest = async (host: Pick<Host, 'call' | 'serves'>, context: Context): Promise<string[]> => {
  if (!(await host.serves('agent.records'))) return []
  const { sessions } = await host.call('agent.records', { limit: USUAL }, { as: context })
  return sessions.map(({ id }) => id)
}

const sentOf = async (host: Pick<Host, 'call' | 'serves'>, id: string, context: Context) => {
  const missing = () => refuse('not-found', `there is no conversation ${JSON.stringify(id)}`)
  if (!(await host.serves('agent.sent'))) return missing()
  return host.call('agent.sent', { id }, { as: context }).catch((error: unknown) => {
    if (Refusal.from(error).reason === 'not-found') return missing()
    throw error
  })
}
