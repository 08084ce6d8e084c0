import type { AgentCard } from '../../../../agents/contract.js'
import { Dialog } from '../../ui/dialog.js'
import type { TurnChoice } from './turn-choice.js'
import { TurnFields } from './turn-fields.js'

interface MessageOptionsProps {
  readonly agent: AgentCard | undefined
  readonly choice: TurnChoice
  readonly close: () => void
}

/** The options of the next message of a conversation, which keeps them. */
export const MessageOptions = ({ agent, choice, close }: MessageOptionsProps) => (
  <Dialog title="Options of the next message" close={close}>
    <p class="quiet small">The conversation goes on with them.</p>
    <TurnFields
      choice={choice}
      provider={agent?.provider}
      usual={{
        model: agent?.model ? `As before (${agent.model})` : 'As before',
        persona: agent?.actsAs ? `As before (${agent.actsAs})` : 'As before',
        mode: 'As before',
      }}
    />
    <div class="card-actions">
      <button class="button primary" type="button" onClick={close}>
        Done
      </button>
    </div>
  </Dialog>
)
