import { useSignal } from '@preact/signals'
import type { AgentCard } from '../../../../agents/contract.js'
import type { ActionState } from '../../ui/action.js'
import { lazyView } from '../../ui/lazy.js'
import { archiveAll, unfinishedWords } from './archive.js'

const ArchiveQuestion = lazyView(async () => (await import('./archive-question.js')).ArchiveQuestion)

/** Archives conversations, and asks first where work of them is unfinished; `question` is shown on the page. */
export const useArchiving = (action: ActionState, done: () => void) => {
  const asked = useSignal<readonly AgentCard[] | undefined>(undefined)
  const archive = async (agents: readonly AgentCard[]): Promise<void> => {
    if (agents.some(agent => unfinishedWords(agent) !== undefined)) {
      asked.value = agents
      return
    }
    await archiveAll(agents.map(({ id }) => id))
    done()
  }
  const question = asked.value && (
    <ArchiveQuestion
      agents={asked.value}
      close={() => {
        asked.value = undefined
      }}
      done={done}
    />
  )
  return { archive, run: (agents: readonly AgentCard[]) => void action.run(() => archive(agents)), question }
}
