import { refuse, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { limitsOf } from '../../sdk/node/access/access-view.js'
import { assertVisible } from '../../sdk/node/access/conversation-reach.js'
import type { LoopsCalls, LoopStart } from './contract.js'
import { assertShape, type LoopDesigns } from './designs.js'
import type { Loops } from './loops.js'
import type { Rounds } from './rounds.js'
import { begunLoop, cardLoop, noRoom, ownedLoop, shownLoop, type StoredLoop } from './stored-loop.js'

const OK = { ok: true } as const
const LISTED = 100
const LISTED_ROUNDS = 5
const LAND = 'POST /agents/{id}/land'

/** The dependencies of the calls. */
export interface LoopsCallsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place'>
  readonly loops: Loops
  readonly rounds: Rounds
  readonly designs: LoopDesigns
  /** Notifies clients that something changed. */
  readonly publish: (key: string) => void
}

/** Serves the calls of the group. */
export const loopsCalls = ({ host, loops, rounds, designs, publish }: LoopsCallsDeps): Handlers<LoopsCalls> => {
  /** Refuses a conversation that the caller may not see, or with `works` not work in; returns it if there is one. */
  const see = async (id: string, { caller }: Context, works: boolean) => {
    await loops.recovered
    const state = await rounds.state(id)
    if (state && limitsOf(caller) !== undefined)
      await assertVisible(await accessViewFor(host, caller), state.conversation, works)
    return state
  }
  /** The loops that the caller may see. */
  const visible = async (all: readonly StoredLoop[], context: Context): Promise<readonly StoredLoop[]> => {
    if (limitsOf(context.caller) === undefined) return all
    const ids = all.map(({ conversationId }) => conversationId)
    const seen = new Set((await host.call('agent.visible', { ids }, { as: context })).ids)
    return all.filter(({ conversationId }) => seen.has(conversationId))
  }
  const seen = async (id: string, context: Context, works = false): Promise<StoredLoop> => {
    await see(id, context, works)
    return loops.get(id)
  }
  const assertFree = async (id: string, context: Context): Promise<void> => {
    const state = await see(id, context, true)
    if (loops.find(id)?.state === 'running') refuse('conflict', `a loop runs on ${id}: stop it first`)
    if (state?.live || state?.waiting) refuse('conflict', `a turn of ${id} runs: wait until it has ended`)
  }
  const lands = async (context: Context): Promise<boolean> => {
    const { kind } = context.caller
    return (
      (kind === 'session' || kind === 'token')
      && (await host.call('kernel.access.admits', { call: LAND }, { as: context })).admits
    )
  }
  const assertPossible = async ({ conversationId, account, agent, harness, model }: LoopStart): Promise<void> => {
    if (conversationId === 'designs')
      refuse('unprocessable', `conversationId: ${conversationId} is a word of a route: choose another`)
    await host.call('agent.assertChoice', {
      ...(agent !== undefined && { agent }),
      ...(harness && { harness }),
      ...(model !== undefined && { model }),
      ...(account !== undefined && { account }),
    })
  }

  return {
    'GET /loops': async ({ state, limit = LISTED, before = Infinity }, context) => {
      await loops.recovered
      const fits = loops.all.filter(loop => loop.startedAt < before && (state === undefined || loop.state === state))
      const found = (await visible(fits, context)).slice(0, limit)
      return { loops: found.map(loop => shownLoop(loop, LISTED_ROUNDS)) }
    },
    'POST /loops': async (start, context) => {
      const { conversationId: id } = start
      assertShape(start)
      await assertFree(id, context)
      await assertPossible(start)
      const mayLand = await lands(context)
      const begun = () => {
        if (loops.find(id)?.state === 'running') refuse('conflict', `a loop runs on ${id}: stop it first`)
        return begunLoop(start, { startedBy: context.caller.actor, startedAt: loops.now, lands: mayLand })
      }
      return shownLoop(await loops.begin(id, begun, context))
    },
    'GET /loops/{conversationId}': async ({ conversationId }, context) =>
      shownLoop(await seen(conversationId, context)),
    'POST /loops/{conversationId}/stop': async ({ conversationId, now = true }, context) => {
      await seen(conversationId, context, true)
      await loops.stop(conversationId, { now, context })
      return OK
    },
    'POST /loops/{conversationId}/resume': async ({ conversationId: id, note, ...ceilings }, context) => {
      await seen(id, context, true)
      await assertFree(id, context)
      const mayLand = await lands(context)
      const resumed = () => {
        const { endedAt: _at, detail: _detail, ...before } = loops.get(id)
        if (before.state === 'running') refuse('conflict', `a loop runs on ${id}: stop it first`)
        if (before.state === 'done') refuse('conflict', `the loop on ${id} is done: start another one`)
        const loop: StoredLoop = {
          ...{ ...before, ...ceilings, state: 'running', resumed: 0, stallFrom: before.iterations.length },
          lands: before.lands && mayLand,
          ...(note !== undefined && { note }),
        }
        const full = noRoom(loop)
        if (full) refuse('unprocessable', `expected ceilings that leave room for a round: ${full.detail}`)
        return loop
      }
      return shownLoop(await loops.begin(id, resumed, context))
    },
    'GET /loops/designs': async () => {
      const { entries: all, problems, wrong } = await designs.read()
      return { designs: all, problems: [...(wrong === undefined ? [] : [{ message: wrong }]), ...problems] }
    },
    'POST /loops/designs': async ({ design, create }) => {
      assertShape(design)
      await designs.put(design, create)
      publish(design.id)
      return design
    },
    'DELETE /loops/designs/{id}': async ({ id }) => {
      await designs.remove(id)
      publish(id)
      return OK
    },
    'loops.run': async ({ startedBy, ...start }) => {
      await loops.recovered
      const { conversationId: id, owner } = start
      if (loops.find(id)?.owner !== owner)
        await loops.begin(id, () => {
          if (loops.find(id)?.state === 'running') refuse('conflict', `a loop runs on ${id}: stop it first`)
          return begunLoop(start, { startedBy, startedAt: loops.now, lands: false })
        })
      return ownedLoop(loops.get(id))
    },
    'loops.owned': async ({ conversationId, owner }) => {
      await loops.recovered
      const loop = loops.find(conversationId)
      return loop?.owner === owner ? ownedLoop(loop) : {}
    },
    'loops.cards': ({ ids }) => ({
      loops: Object.fromEntries(
        ids.flatMap(id => {
          const loop = loops.find(id)
          return loop ? [[id, cardLoop(loop)]] : []
        }),
      ),
    }),
    'loops.drives': ({ conversationId }) => ({ drives: loops.find(conversationId)?.state === 'running' }),
  }
}
