import type { Context, Handlers, Host } from '../../../sdk/index.js'
import type { System } from '../contract.js'
import type { BrowserSession } from '../browsers-contract.js'
import { Browsers } from './browsers.js'
import { chromiumProgram } from './chromium.js'

type Answered = 'GET /system/browsers' | 'DELETE /system/browsers/{name}' | 'POST /system/browsers/{name}/page' | `browsers.${'open' | 'page' | 'list' | 'end'}`

/** Answers the calls of browsers; nothing runs before the first is opened. */
export const browserCalls = (host: Host): Pick<Handlers<System>, Answered> => {
  const changed = (key: string) => void host.call('kernel.events.publish', { domain: 'browsers', key }).catch(() => {})
  const browsers = new Browsers({
    place: host.place, signal: host.signal, changed,
    listeners: async () => (await host.call('kernel.listeners')).listeners,
  })
  host.contribute('system.programs', async () => [await chromiumProgram()])
  host.boot('remove what old browsers left', () => browsers.sweep())
  host.stopping(() => browsers.stop())
  return {
    'GET /system/browsers': (_, context) => ({ sessions: browsers.list().map(session => seenBy(session, context)) }),
    'DELETE /system/browsers/{name}': async ({ name }) => {
      await browsers.end(name)
      return { ok: true }
    },
    'POST /system/browsers/{name}/page': (input, { caller }) => browsers.page(input, caller.kind === 'session'),
    'browsers.open': input => browsers.open(input),
    'browsers.page': input => browsers.page(input),
    'browsers.list': () => ({ sessions: browsers.list() }),
    'browsers.end': async ({ name, conversationId }) => {
      if (name !== undefined) await browsers.end(name)
      if (conversationId !== undefined) await browsers.endOf(conversationId)
      return { ok: true }
    },
  }
}

/** Viewers and tokens are not shown what the pages of somebody's account say. */
const seenBy = (session: BrowserSession, { caller }: Context): BrowserSession => {
  const whole = session.server === 'web' || (caller.kind !== 'token' && caller.role !== 'viewer')
  return whole ? session : { ...session, pages: session.pages.map(({ id, url, active }) => ({ id, url: url.replace(/[?#].*$/s, ''), active })) }
}
