import { searchesFiles } from '../../../sdk/node/outputs/commands.js'
import type { UsageTurn } from '../../usage/contract.js'
import type { ToolCard } from '../contract.js'
import type { RunRecord } from '../turn/run-record.js'
import type { TurnArms } from './contract.js'

const CHANGES = new Set<ToolCard['category']>(['edit', 'delete', 'move'])

const searches = ({ name, category, target = '' }: ToolCard): boolean =>
  name === 'Search' || (category === 'execute' && searchesFiles(target))

/**
 * What experiments measure in a turn; of the first turn of a conversation also the searches before its first change.
 */
export const measuredIn = (
  record: Pick<RunRecord, 'prose' | 'rows'>,
  { terse, search }: TurnArms,
  first: boolean,
): Partial<UsageTurn> => {
  const calls = record.rows.flatMap(({ tools = [] }) => tools)
  const change = calls.findIndex(({ category }) => CHANGES.has(category))
  return {
    ...(terse && { terse: terse.on, terseCohort: terse.cohort, proseChars: record.prose.length }),
    ...(search && {
      iqSearchArm: search.on,
      iqSearchCohort: search.cohort,
      searchCalls: calls.filter(searches).length,
      ...(first && { openingSearches: (change < 0 ? calls : calls.slice(0, change)).filter(searches).length }),
    }),
  }
}
