import type { LiveTurn } from '../contract.js'
import type { RunRecord } from './run-record.js'

/** A live turn as the fleet shows it. */
export const liveTurn = (
  { run, state, startedAt }: Pick<LiveTurn, 'run' | 'state' | 'startedAt'>,
  { tool, todo, helpers, unenforced }: Pick<RunRecord, 'tool' | 'todo' | 'helpers' | 'unenforced'>,
  cards: LiveTurn['cards'],
): LiveTurn => {
  // A card that is still being written cannot be answered yet, so the turn is not shown as parked.
  const waitsForNobody = state === 'parked' && cards.length === 0
  return {
    run,
    state: waitsForNobody ? 'running' : state,
    startedAt,
    cards,
    ...(unenforced && { unenforced: [...unenforced] }),
    ...(helpers.all.length > 0 && { helpers: { running: helpers.open.length, total: helpers.all.length } }),
    ...(tool && { tool: tool.name }),
    ...(tool?.target && { target: tool.target }),
    ...(todo && { todo }),
  }
}
