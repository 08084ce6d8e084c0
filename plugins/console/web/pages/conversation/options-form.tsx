import { useSignal } from '@preact/signals'
import type { AgentCard } from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { cardTitle } from '../../ui/status.js'
import { reaches } from '../registry.js'

type Own = 'rules' | 'yes' | 'no'

const ownOf = (value: boolean | undefined): Own => (value === undefined ? 'rules' : value ? 'yes' : 'no')
const VALUES = { rules: null, yes: true, no: false } as const

/** The title of a conversation, and what happens by itself after its turns. */
const OptionsForm = ({ agent, close }: { agent: AgentCard; close: () => void }) => {
  const { branch, autoLand, resumeAfterOutage } = agent
  const id: string = agent.id
  const title = useSignal(cardTitle(agent))
  const lands = useSignal(ownOf(autoLand))
  const resumes = useSignal(ownOf(resumeAfterOutage))
  const mayLand = branch !== undefined && reaches(person.value?.role, 'maintainer')
  return (
    <DialogForm
      title="Options of the conversation"
      close={close}
      verb="Save"
      work={async () => {
        if (title.value !== cardTitle(agent)) await askDaemon('POST /agents/{id}/rename', { id, title: title.value })
        if (mayLand && lands.value !== ownOf(autoLand))
          await askDaemon('POST /agents/{id}/auto-land', { id, autoLand: VALUES[lands.value] })
        if (resumes.value !== ownOf(resumeAfterOutage))
          await askDaemon('POST /agents/{id}/resume-after-outage', { id, resumeAfterOutage: VALUES[resumes.value] })
      }}
    >
      <TextField label="Title" required value={title} />
      {mayLand && (
        <ChoiceField
          label="When a turn is completed"
          value={lands}
          choices={[
            ['rules', 'As the rules of the sandbox say'],
            ['yes', 'Land its work'],
            ['no', 'Wait for somebody to land it'],
          ]}
        />
      )}
      <ChoiceField
        label="After an outage of the provider"
        value={resumes}
        choices={[
          ['rules', 'As the settings say'],
          ['yes', 'Resume the turn'],
          ['no', 'Leave it as it is'],
        ]}
      />
    </DialogForm>
  )
}

/** Opens the options of a conversation. */
export const OptionsButton = ({ agent }: { agent: AgentCard }) => (
  <FormButton label="Options" form={close => <OptionsForm agent={agent} close={close} />} />
)
