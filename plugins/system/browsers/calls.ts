import { refuse, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import { record } from '../../../sdk/node/record/record.js'
import type { System } from '../contract.js'
import type { BrowserSession } from './contract.js'
import { Browsers } from './browsers.js'
import { View } from './view.js'
import { ignored } from '../../../sdk/index.js'

type Answered =
  | 'GET /system/browsers'
  | 'DELETE /system/browsers/{name}'
  | 'POST /system/browsers/{name}/page'
  | 'GET /system/browser-view'
  | `browsers.${'open' | 'page' | 'use' | 'list' | 'kept' | 'forget' | 'end'}`

/** Serves the calls of browsers; starts nothing before the first is opened. */
export const browserCalls = (host: Host): Pick<Handlers<System>, Answered> => {
  const changed = (key: string) =>
    void host
      .call('kernel.events.publish', { domain: 'browsers', key })
      .catch(ignored('clients read the state again when they connect'))
  const browsers = new Browsers({
    place: host.place,
    log: host.log,
    signal: host.signal,
    changed,
    listeners: async () => (await host.call('kernel.listeners')).listeners,
    ended: ({ name, conversationId }) =>
      host.emit('browser.ended', { name, ...(conversationId !== undefined && { conversationId }) }),
    exitPort: async id => {
      if (!(await host.serves('exit.proxyFor'))) refuse('unavailable', 'this sandbox runs without exits')
      return (await host.call('exit.proxyFor', { id })).port
    },
    // The point says that it is one.
    reachOf: async id => (await (await host.collect('browsers.reach'))[0]?.(id)) as NetworkReach | undefined,
  })
  host.boot('remove what old browsers left', () => browsers.sweep())
  host.stopping(() => browsers.stop())
  host.on('turn.settled', ({ conversationId }) => void browsers.endOf(conversationId))
  const recordEntry = (
    type: string,
    { about: { name, conversationId } }: { about: Pick<BrowserSession, 'name' | 'conversationId'> },
    context: Context,
  ) =>
    record(
      host,
      { type, audience: 'viewer', extra: { browser: name }, ...(conversationId !== undefined && { conversationId }) },
      context,
    )
  /** People limited to areas see the browsers of conversations inside them. */
  const inside = async ({ conversationId: id }: BrowserSession, context: Context): Promise<boolean> => {
    if (!context.caller.areas) return true
    if (id === undefined || !(await host.serves('GET /agents/{id}'))) return false
    return host.call('GET /agents/{id}', { id }, { as: context, signal: context.signal }).then(
      () => true,
      () => false,
    )
  }
  return {
    'GET /system/browsers': async (_, context) => {
      const all = await browsers.list()
      const seen = await Promise.all(all.map(session => inside(session, context)))
      return { sessions: all.filter((_, at) => seen[at]).map(session => seenBy(session, context)) }
    },
    'DELETE /system/browsers/{name}': async ({ name }, context) => {
      const ended = await browsers.end(name)
      if (ended) await recordEntry('browser.closed', ended, context)
      return { ok: true }
    },
    'POST /system/browsers/{name}/page': (input, { caller }) => browsers.page(input, caller.kind === 'session'),
    'GET /system/browser-view': async ({ session }, context) => {
      const { about, running } = await browsers.running(session)
      const leave = running.watch()
      context.signal.addEventListener('abort', leave, { once: true })
      if (context.signal.aborted) leave()
      await recordEntry('browser.attached', { about }, context)
      return new View(running, () => recordEntry('browser.driven', { about }, context)).frames(
        context.frames,
        context.signal,
      )
    },
    'browsers.open': input => browsers.open(input),
    'browsers.page': input => browsers.page(input),
    'browsers.use': input => browsers.use(input),
    'browsers.list': async () => ({ sessions: await browsers.list() }),
    'browsers.kept': async ({ profile }) => ({ hosts: await browsers.kept(profile) }),
    'browsers.forget': async ({ profile }) => {
      await browsers.forget(profile)
      return { ok: true }
    },
    'browsers.end': async ({ name, conversationId }) => {
      if (name !== undefined) await browsers.end(name)
      if (conversationId !== undefined) await browsers.endOf(conversationId)
      return { ok: true }
    },
  }
}

/** Hides the addresses and titles of an account's pages from viewers and tokens. */
const seenBy = (session: BrowserSession, { caller }: Context): BrowserSession => {
  const whole = session.server === 'web' || (caller.kind !== 'token' && caller.role !== 'viewer')
  return whole
    ? session
    : {
        ...session,
        pages: session.pages.map(({ id, url, active }) => ({ id, url: url.replace(/[?#].*$/s, ''), active })),
      }
}
