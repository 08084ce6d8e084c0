import type { AgentCard } from '../../../../agents/contract.js'
import { DialogForm } from '../../ui/dialog.js'
import { cardTitle } from '../../ui/status.js'
import { visibleName } from '../../ui/format.js'
import { archiveAll, unfinishedWords } from './archive.js'

interface ArchiveQuestionProps {
  readonly agents: readonly AgentCard[]
  readonly close: () => void
  /** Called when they are in the archive. */
  readonly done: () => void
}

/** Asks before conversations with unfinished work leave the board. */
export const ArchiveQuestion = ({ agents, close, done }: ArchiveQuestionProps) => {
  const unfinished = agents.flatMap(agent => {
    const words = unfinishedWords(agent)
    return words === undefined ? [] : [{ agent, words }]
  })
  return (
    <DialogForm
      title={agents.length === 1 ? 'Archive this conversation?' : `Archive ${agents.length} conversations?`}
      close={close}
      verb="Archive"
      work={async () => {
        await archiveAll(agents.map(({ id }) => id))
        done()
      }}
    >
      <ul>
        {unfinished.map(({ agent, words }) => (
          <li key={agent.id}>
            {visibleName(cardTitle(agent))}: {words}.
          </li>
        ))}
      </ul>
      <p class="quiet">The work is kept on its branch; the archive brings the conversation back.</p>
    </DialogForm>
  )
}
