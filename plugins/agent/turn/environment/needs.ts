import { refuse, type Host } from '../../../../sdk/index.js'
import type { Engine } from '../engine.js'
import type { NeedTools } from '../../tools/tool.js'
import type { TurnNote } from '../frames/frames.js'
import type { Turn } from '../turn.js'

type NeedsHost = Pick<Host, 'call' | 'serves'>

/**
 * Answers to needs that the conversation did not wait for, as notes for a turn. One in which others had a say is marked
 * before anything of it is prepared; one that goes on after a restart has its notes.
 */
export const needNotes = async (
  host: NeedsHost,
  { conversationId, run, record, entry }: Pick<Turn, 'conversationId' | 'run' | 'record' | 'entry'>,
): Promise<TurnNote[]> => {
  if (record.notes || !(await host.serves('needs.forTurn'))) return []
  const { notes, byOthers } = await host.call('needs.forTurn', { conversationId, run })
  if (byOthers) await entry.change({ outsiders: true })
  return notes
}

/** Shows in a running turn what becomes of the needs of its conversation. */
export const showNeeds = (host: Pick<Host, 'on'>, engine: Pick<Engine, 'live'>): void =>
  host.on('need.changed', ({ conversationId, open: _open, ...need }) => {
    const turn = engine.live(conversationId)
    if (turn && !turn.leaving && !turn.record.done) turn.log.push({ kind: 'need', ...need })
  })

/** Asks people on behalf of a turn. */
export const needTools = (
  host: NeedsHost,
  { conversationId, run }: { readonly conversationId: string; readonly run: string },
): NeedTools => {
  const served = () => host.serves('needs.ask')
  const assertServed = async () =>
    (await served()) || refuse('unavailable', 'this sandbox keeps no needs: ask in your answer instead')
  return {
    served,
    raise: async asked => {
      await assertServed()
      return (await host.call('needs.ask', { ...asked, conversationId, run })).id
    },
    withdraw: async id => {
      await assertServed()
      await host.call('needs.withdraw', { id, conversationId })
    },
  }
}
