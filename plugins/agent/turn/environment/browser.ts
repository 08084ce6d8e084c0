import { hash } from 'node:crypto'
import type { Host } from '../../../../sdk/index.js'
import type { BrowserTools } from '../../tools/tool.js'
import type { Engine } from '../engine.js'
import type { Turn } from '../turn.js'

/** The name of the browser or terminal of a conversation; the same after a restart. */
export const sessionNameOf = (conversationId: string): string => `agent-${hash('sha256', conversationId).slice(0, 24)}`

/** The browser of a turn's conversation. `near`: its pages reach ports of the conversation and private addresses. */
export const browserTools = (
  host: Pick<Host, 'call' | 'serves'>,
  turn: Pick<Turn, 'conversationId' | 'log'>,
  near: boolean,
): BrowserTools => {
  const { conversationId, log } = turn
  const name = sessionNameOf(conversationId)
  let told = false
  const session = async () =>
    (await host.call('browsers.list')).sessions.find(each => each.name === name && each.running)
  const read = (pageId?: string) =>
    host.call('browsers.use', { name, action: 'read', ...(pageId !== undefined && { pageId }) })
  return {
    served: () => host.serves('browsers.use'),
    session,
    open: async url => {
      if (await session()) await host.call('browsers.page', { name, action: 'open', url })
      else await host.call('browsers.open', { name, conversationId, label: `Agent of ${conversationId}`, near, url })
      if (!told) log.push({ kind: 'browser', session: name })
      told = true
      return read()
    },
    act: async act => {
      const { session: after } = await host.call('browsers.page', { ...act, name })
      return after.pages.length > 0 ? read(act.action === 'close' ? undefined : act.pageId) : undefined
    },
    use: use => host.call('browsers.use', { ...use, name }),
  }
}

/** Takes back cards about browsers that were closed or crashed. */
export const withdrawClosed = (host: Pick<Host, 'on'>, engine: Pick<Engine, 'live'>): void =>
  host.on('browser.ended', ({ name, conversationId }) => {
    if (conversationId === undefined) return
    engine.live(conversationId)?.withdrawCards(({ card }) => card.kind === 'browser_help' && card.session === name)
  })
