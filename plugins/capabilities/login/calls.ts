import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import { Failures } from '../../../sdk/node/access/failures.js'
import type { LoginCalls, LoginPage } from './contract.js'
import { Logins, type LoginsDeps } from './logins.js'

const MOST_UNKNOWN = 30
const WINDOW_MS = 60_000

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Signed in</title>
<p>You are signed in. You can close this page.
`

/** Serves the sign-ins of connected servers. */
export const loginCalls = (host: Host, deps: Omit<LoginsDeps, 'host'>): Handlers<LoginCalls> => {
  const logins = new Logins({ ...deps, host })
  const unknown = new Failures(MOST_UNKNOWN, WINDOW_MS, Date.now)
  return {
    'POST /capabilities/{id}/login': ({ id }, { http }) => logins.start(id, http?.base ?? ''),
    'POST /capabilities/{id}/login/finish': given => logins.finish(given),
    'GET /capabilities/oauth/callback': async ({ state, code, error, iss }) => {
      const retryAfter = unknown.wait('all')
      if (retryAfter !== undefined)
        refuse('too-many', 'too many sign-ins that nobody began: try again later', { retryAfter })
      const query = new URLSearchParams(
        Object.entries({ state, code, error, iss }).filter((pair): pair is [string, string] => pair[1] !== undefined),
      )
      if (!(await logins.callback(query))) {
        unknown.add('all')
        refuse('invalid', 'state: no sign-in waits for this answer: it is done, has expired, or was never begun')
      }
      return {
        'content-type': 'text/html; charset=utf-8',
        data: PAGE,
        headers: { 'content-security-policy': "default-src 'none'", 'referrer-policy': 'no-referrer' },
      } satisfies LoginPage & { data: string; headers: object }
    },
  }
}
