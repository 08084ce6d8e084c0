import { hash } from 'node:crypto'
import { refuse, type Host } from '../../../../sdk/index.js'
import type { Trust } from '../../../../sdk/node/wall/spec.js'
import type { BrowserTools, OneBrowser } from '../../tools/tool.js'
import type { Engine } from '../engine.js'
import type { Turn } from '../turn.js'

const TRUSTS: readonly Trust[] = ['lands', 'waits', 'outside']

/** The name of the browser or terminal of a conversation; the same after a restart. */
export const sessionNameOf = (conversationId: string, account = ''): string =>
  `agent-${hash('sha256', account === '' ? conversationId : `${conversationId}\n${account}`).slice(0, 24)}`

/** What a turn may use of the connections. */
export interface BrowserReach {
  /** Pages reach ports of the conversation and private addresses. */
  readonly near: boolean
  /** Whose work it is now: browsers are apart from those of others, and so is what their pages store. */
  readonly trust: () => Trust
  /** The connections that its persona names; undefined: all. */
  readonly capabilities?: readonly string[]
}

/** The browsers of a turn's conversation: one without sign-ins, and one for each account that it uses. */
export const browserTools = (
  host: Pick<Host, 'call' | 'serves'>,
  turn: Pick<Turn, 'conversationId' | 'log'>,
  { near, trust, capabilities }: BrowserReach,
): BrowserTools => {
  const { conversationId, log } = turn
  const told = new Set<string>()
  const allowed = capabilities ? { capabilities: [...capabilities] } : {}
  let last: string | undefined
  const running = async (name: string) =>
    (await host.call('browsers.list')).sessions.find(each => each.name === name && each.running)
  const nameOf = (account = '', of = trust()) =>
    sessionNameOf(conversationId, of === 'lands' ? account : `${account}\n${of}`)
  /** Browsers of before somebody who may not land took part, or of the other way round, are used no more. */
  const endOthers = async (account: string | undefined) => {
    for (const of of TRUSTS) {
      const name = nameOf(account, of)
      if (of !== trust() && (await running(name))) await host.call('browsers.end', { name })
    }
  }
  const profileOf = async (account: string) => {
    if (!(await host.serves('capabilities.profile')))
      return refuse('not-found', `this turn has no signed-in account ${account}`)
    const { profile, label, signedIn, exit } = await host.call('capabilities.profile', { id: account, ...allowed })
    const key = trust()
    return {
      profile,
      ...(exit !== undefined && { exit }),
      label: `${label}, in ${conversationId}`.slice(0, 80),
      ...(key !== 'lands' && { apart: { key, ...(signedIn !== undefined && { since: signedIn }) } }),
    }
  }
  const of = (account: string | undefined): OneBrowser => {
    const read = (name: string, pageId?: string) =>
      host.call('browsers.use', { name, action: 'read', ...(pageId !== undefined && { pageId }) })
    const used = async () => {
      // A connection that was removed meanwhile, or that the persona does not name, is used no more.
      if (account !== undefined) await profileOf(account)
      return (last = nameOf(account))
    }
    return {
      open: async url => {
        const name = await used()
        if (await running(name)) await host.call('browsers.page', { name, action: 'open', url })
        else {
          await endOthers(account)
          const own = account === undefined ? { label: `Agent of ${conversationId}` } : await profileOf(account)
          await host.call('browsers.open', { name, conversationId, near, url, ...own })
        }
        if (!told.has(name)) log.push({ kind: 'browser', session: name })
        told.add(name)
        return read(name)
      },
      act: async act => {
        const name = await used()
        const { session: after } = await host.call('browsers.page', { ...act, name })
        return after.pages.length > 0 ? read(name, act.action === 'close' ? undefined : act.pageId) : undefined
      },
      capture: async pageId => {
        const name = await used()
        const act = { name, action: 'capture' as const, ...(pageId !== undefined && { pageId }) }
        const { capture } = await host.call('browsers.page', act)
        return capture ?? refuse('conflict', 'no page is open: open one first')
      },
      use: async use => {
        const name = await used()
        return host.call('browsers.use', { ...use, name })
      },
    }
  }
  return {
    served: () => host.serves('browsers.use'),
    session: async () => (await running(last ?? '')) ?? running(nameOf()),
    of,
    origins: async id =>
      (await host.serves('capabilities.origins'))
        ? (await host.call('capabilities.origins', { id, ...allowed })).origins
        : undefined,
    code: async id => {
      if (!(await host.serves('capabilities.code'))) return refuse('not-found', `this turn has no connection ${id}`)
      return (await host.call('capabilities.code', { id, ...allowed })).code
    },
  }
}

/** Takes back cards about browsers that were closed or crashed. */
export const withdrawClosed = (host: Pick<Host, 'on'>, engine: Pick<Engine, 'live'>): void =>
  host.on('browser.ended', ({ name, conversationId }) => {
    if (conversationId === undefined) return
    engine.live(conversationId)?.withdrawCards(({ card }) => card.kind === 'browser_help' && card.session === name)
  })
