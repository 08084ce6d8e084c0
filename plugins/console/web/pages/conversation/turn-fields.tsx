import type { PermissionMode } from '../../../../agent/contract.js'
import type { Persona } from '../../../../personas/contract.js'
import type { ProviderAccount } from '../../../../accounts/contract.js'
import type { Choice } from '../../../../providers/contract.js'
import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { ChoiceField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { useQuery } from '../../ui/query.js'
import { providerOf, type TurnChoice } from './turn-choice.js'

const MODES: readonly (readonly [PermissionMode, string])[] = [
  ['bypassPermissions', 'Acts without asking'],
  ['acceptEdits', 'Asks before commands'],
  ['default', 'Asks before changes and commands'],
  ['plan', 'Plans first'],
]

/** What a turn can run on, by provider; what is not ready is shown with the reason. */
const modelChoices = async (): Promise<readonly Choice[]> =>
  served.value.has('providers.choices') ? (await askDaemon('GET /providers/models', { limit: 500 })).choices : []

const personaChoices = async (): Promise<readonly Persona[]> =>
  served.value.has('personas.list') ? (await askDaemon('GET /personas')).personas : []

/** The accounts of a provider that has several. */
const accountChoices = async (provider: string | undefined): Promise<readonly ProviderAccount[]> => {
  if (provider === undefined || !served.value.has('accounts.list')) return []
  const { providers } = await askDaemon('GET /providers')
  const several = providers.some(({ id, accounts }) => id === provider && accounts > 1)
  return several ? (await askDaemon('GET /accounts/{provider}', { provider })).accounts : []
}

const valueOf = ({ provider, model }: Choice): string => JSON.stringify([provider, model.id])
interface ModelFieldProps {
  readonly choices: readonly Choice[]
  readonly choice: TurnChoice
  readonly usual: string
}

const ModelField = ({ choices, choice: { model, account }, usual }: ModelFieldProps) => (
  <label class="field">
    Model
    <select
      value={model.value}
      onChange={event => {
        const before = providerOf(model.value)
        model.value = event.currentTarget.value
        if (providerOf(model.value) !== before) account.value = ''
      }}
    >
      <option value="">{usual}</option>
      {[...Map.groupBy(choices, ({ providerLabel }) => providerLabel)].map(([label, list]) => (
        <optgroup key={label} label={label}>
          {list.map(choice => (
            <option key={valueOf(choice)} value={valueOf(choice)} disabled={!choice.ready}>
              {choice.model.label}
              {!choice.ready && ` (${choice.reason ?? 'not ready'})`}
            </option>
          ))}
        </optgroup>
      ))}
    </select>
  </label>
)

interface TurnFieldsProps {
  readonly choice: TurnChoice
  /** The provider that the conversation has. */
  readonly provider?: string | undefined
  /** What an option is that nobody chooses. */
  readonly usual: { readonly model: string; readonly persona: string; readonly mode: string }
}

/** What a turn runs on, as whom it acts, and what it asks for. */
export const TurnFields = ({ choice, provider, usual }: TurnFieldsProps) => {
  const runsOn = providerOf(choice.model.value) ?? provider
  const { data: choices } = useQuery('choices', ['providers', 'endpoints', 'capabilities'], modelChoices)
  const { data: personas } = useQuery('persona choices', ['personas'], personaChoices)
  const { data: accounts } = useQuery(`account choices ${runsOn ?? ''}`, ['accounts'], () => accountChoices(runsOn))
  return (
    <>
      {choices && choices.length > 1 && <ModelField choices={choices} choice={choice} usual={usual.model} />}
      {accounts && accounts.length > 0 && (
        <ChoiceField
          label="Account"
          value={choice.account}
          choices={[
            ['', 'The one with most room'],
            ...accounts.map(({ id, label, needsReauth }): readonly [string, string] => [
              id,
              `${visibleName(label)}${needsReauth ? ' (sign in again)' : ''}`,
            ]),
          ]}
        />
      )}
      {personas && personas.length > 0 && (
        <ChoiceField
          label="Persona"
          value={choice.persona}
          choices={[['', usual.persona], ...personas.map(({ id, label = id }) => [id, label] as const)]}
        />
      )}
      <ChoiceField label="Permissions" value={choice.mode} choices={[['', usual.mode], ...MODES]} />
    </>
  )
}
