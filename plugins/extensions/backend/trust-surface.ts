import type { ServedRoute } from '../../../sdk/kernel.js'

/** Groups of which no call without a token scope is reached. */
const CLOSED_GROUPS = new Set(['accounts', 'routed', 'secrets', 'capabilities', 'endpoints', 'logs', 'exports', 'cli'])
/** Groups of which only reads are reached. */
const READ_ONLY_GROUPS = new Set(['shield', 'safety', 'settings', 'areas', 'capabilities'])
/** Calls about who may do what, by operation id. */
const CLOSED_CALLS = new RegExp(
  '^system[.](?:session|sessions|revokeSessions|mintToken|tokens|revokeToken|members|grant|removeMember|leave|invite'
    + '|revokeInvite|ticket|presence|terminals|openTerminal|killTerminal|terminalScrollback|browserPage|closeBrowser'
    + '|bundles|export|removeBundle|restore)$'
    + '|^workspace[.](?:mediaTicket|downloadTicket)$|^activity[.]export$|^automations[.](?:create|save)$'
    + '|^extensions[.](?!list$|readiness$|processStatus$|settings$|removal$)',
)

/** Calls that show what people and agents wrote. */
const TRANSCRIPTS = new Set([
  'agents.transcript',
  'agents.search',
  'agent.attach',
  'agent.cards',
  'sessions.list',
  'sessions.get',
  'system.subagentTranscript',
])

/** Whether a route is never reached by an extension, whatever its manifest has. */
export const isTrustSurface = (call: string, { id, role, tokens = [] }: ServedRoute): boolean => {
  const group = id.split('.', 1)[0]!
  if (role === undefined || group === 'open') return true
  if (/ \/(?:secrets|bundles|x)(?:\/|$)/.test(call)) return true
  if (READ_ONLY_GROUPS.has(group) && !call.startsWith('GET ')) return true
  if (CLOSED_GROUPS.has(group) && tokens.length === 0) return true
  return CLOSED_CALLS.test(id)
}

/** Whether a route needs the entry `conversation:read` besides its own. */
export const showsTranscripts = ({ id }: ServedRoute): boolean => TRANSCRIPTS.has(id)
