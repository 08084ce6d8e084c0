import type { Contract, Host } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import { sessionsContract, type SessionCalls } from './contract.js'
import { cursorOf, placeOfCursor } from './cursor.js'
import { examples } from './examples.js'

export const contract: Contract<SessionCalls> = { ...sessionsContract, examples }

const PAGE = 50

/** Lists, searches and forgets the records that group agent keeps of conversations. */
export const activate = async (host: Host): Promise<void> => {
  await host.serve(sessionsContract, {
    'GET /sessions': async ({ query, caseSensitive, state, limit = PAGE, before }, context) => {
      const words = query?.trim()
      const { next, ...page } = await host.call(
        'agent.records',
        {
          limit,
          ...(words && { query: words }),
          ...(caseSensitive !== undefined && { caseSensitive }),
          ...(state !== undefined && { state }),
          ...(before !== undefined && { before: placeOfCursor(before) }),
        },
        { as: context, signal: context.signal },
      )
      return { ...page, ...(next && { next: cursorOf(next) }) }
    },
    'GET /sessions/{id}': (asked, context) => host.call('agent.record', asked, { as: context, signal: context.signal }),
    'DELETE /sessions/{id}': async ({ id }, context) => {
      const { title } = await host.call('agent.forget', { id }, { as: context })
      await record(host, { type: 'session.removed', title, extra: { id } }, context)
      return { ok: true }
    },
  })
}
