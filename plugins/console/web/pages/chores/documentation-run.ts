import type { ChoreSignals } from '../../../../chores/contract.js'
import { visibleName } from '../../ui/format.js'
import type { AskedRun } from '../new/asked-run.js'

const MOST_NAMED = 30

/** What an agent is asked where packages have no page that says what they are. */
export const documentationRun = (repo: string, packages: ChoreSignals['packages']): AskedRun => ({
  title: 'Documentation',
  runRole: 'documentation-run',
  ...(repo !== 'root' && { startIn: repo }),
  prompt: [
    `Packages of the repository ${repo} have no README: ${packages
      .map(({ dir }) => visibleName(dir || '.'))
      .slice(0, MOST_NAMED)
      .join(', ')}.`,
    'Write one for each from its code: what it is for, how it is used, what is surprising. Run every command that you '
      + 'write down, and change no code.',
  ].join('\n'),
})
