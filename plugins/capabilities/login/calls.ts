import { Refusal, refuse, type Handlers, type Host, type Input } from '../../../sdk/index.js'
import { Failures } from '../../../sdk/node/access/failures.js'
import { MESSAGE_PAGE_HEADERS, messagePage, wantsPage } from '../../../sdk/node/pages/message-page.js'
import type { LoginCalls, LoginPage } from './contract.js'
import type { Sites } from '../sites/site-kind.js'
import { Logins, type LoginsDeps } from './logins.js'

const MOST_UNKNOWN = 30
const SITES: ReadonlySet<string> = new Set(['browser', 'identity'])
const WINDOW_MS = 60_000
const PAGE_STATUSES = [400, 424, 429, 503] as const

const pageOf = (title: string, text: string, headers = {}) =>
  ({
    'content-type': MESSAGE_PAGE_HEADERS['content-type'],
    data: messagePage(title, text),
    headers: { ...MESSAGE_PAGE_HEADERS, 'referrer-policy': 'no-referrer', ...headers },
  }) satisfies LoginPage & { data: string; headers: object }

/** The page of a refusal; other errors are thrown on. */
const failurePage = (error: unknown) => {
  const refusal = Refusal.from(error)
  const status = PAGE_STATUSES.find(each => each === refusal.status)
  if (status === undefined) throw error
  const { retryAfter } = refusal.detail
  const page = pageOf(
    'The sign-in failed',
    refusal.message,
    retryAfter === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(retryAfter))) },
  )
  return { ...page, status }
}

/** Serves the sign-ins of connected servers. */
export const loginCalls = (
  host: Host,
  deps: Omit<LoginsDeps, 'host'> & { readonly sites: () => Pick<Sites, 'login' | 'finish'> },
): Handlers<LoginCalls> => {
  const logins = new Logins({ ...deps, host })
  const unknown = new Failures(MOST_UNKNOWN, WINDOW_MS, Date.now)
  const finished = async ({ state, code, error, iss }: Input<LoginCalls, 'GET /capabilities/oauth/callback'>) => {
    const retryAfter = unknown.wait('all')
    if (retryAfter !== undefined)
      refuse('too-many', 'too many sign-ins that nobody began: try again later', { retryAfter })
    const query = new URLSearchParams(
      Object.entries({ state, code, error, iss }).filter((pair): pair is [string, string] => pair[1] !== undefined),
    )
    if (await logins.callback(query)) return
    unknown.add('all')
    refuse('invalid', 'state: no sign-in waits for this answer: it is done, has expired, or was never begun')
  }
  return {
    'POST /capabilities/{id}/login': async ({ id, kind }, { http }) => {
      const found = await deps.entries().get(id)
      const own = SITES.has(found.kind) ? 'browser' : 'oauth'
      if (kind !== undefined && kind !== own)
        refuse(
          'conflict',
          `there is nothing to sign in to: a connection of kind ${found.kind} has no sign-in of ${kind}`,
        )
      return own === 'browser' ? deps.sites().login(id) : logins.start(id, http?.base ?? '')
    },
    'POST /capabilities/{id}/login/finish': async given => {
      const { id, handshake, cancel = false } = given
      const status = await deps.sites().finish(id, handshake, cancel)
      return status ? { ok: true, status } : logins.finish(given)
    },
    'GET /capabilities/oauth/callback': async (answer, { http }) => {
      try {
        await finished(answer)
        return pageOf('You are signed in', 'You can close this page.')
      } catch (error) {
        if (!wantsPage(http?.accept)) throw error
        return failurePage(error)
      }
    },
  }
}
