import { useSignal, type Signal } from '@preact/signals'
import type { ExtensionSetting } from '../../../../extensions/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine, Loaded } from '../../ui/page.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'

interface Values {
  readonly settings: { readonly [key: string]: string | number | boolean }
  readonly secretsSet: readonly string[]
}

/** What people set for an extension; secret values are stored and never shown. */
export const ExtensionSettingsSection = ({
  id,
  settings,
  mayChange,
}: {
  id: string
  settings: readonly ExtensionSetting[]
  mayChange: boolean
}) => {
  const values = useQuery(`extension settings ${id}`, ['extensions'], () =>
    askDaemon('GET /extensions/{id}/settings', { id }),
  )
  if (settings.length === 0) return null
  return (
    <section aria-labelledby="settings-heading">
      <h2 id="settings-heading">Settings</h2>
      <Loaded query={values}>
        {given =>
          mayChange ? (
            <SettingsForm key={JSON.stringify(given)} id={id} settings={settings} values={given} />
          ) : (
            <Pairs
              rows={settings.map(({ key, title, secret }) => [
                title,
                secret ? (given.secretsSet.includes(key) ? 'set' : 'not set') : String(given.settings[key] ?? ''),
              ])}
            />
          )
        }
      </Loaded>
    </section>
  )
}

const SettingsForm = ({
  id,
  settings,
  values,
}: {
  id: string
  settings: readonly ExtensionSetting[]
  values: Values
}) => {
  const action = useAction()
  const saved = useSignal(false)
  const fields = useSignal(
    new Map(settings.map(({ key, secret }) => [key, { text: secret ? '' : String(values.settings[key] ?? '') }])),
  )
  const fieldOf = (key: string): Signal<string> =>
    ({
      get value() {
        return fields.value.get(key)!.text
      },
      set value(text: string) {
        saved.value = false
        fields.value = new Map([...fields.value, [key, { text }]])
      },
    }) as Signal<string>
  const given = () => {
    const entries = settings.flatMap(({ key, type, secret }): [string, string | number | boolean][] => {
      const { text } = fields.value.get(key)!
      if (text === '') return []
      if (secret || type === 'string' || type === 'enum') return [[key, text]]
      return [[key, type === 'number' ? Number(text) : text === 'true']]
    })
    return Object.fromEntries(entries)
  }
  return (
    <form
      class="stack"
      onSubmit={event => {
        event.preventDefault()
        void action.run(async () => {
          await askDaemon('POST /extensions/{id}/settings', { id, settings: given() })
          saved.value = true
          refetch(new Set(['extensions']))
        })
      }}
    >
      {settings.map(setting => (
        <SettingField
          key={setting.key}
          setting={setting}
          value={fieldOf(setting.key)}
          isSet={values.secretsSet.includes(setting.key)}
        />
      ))}
      <FaultLine fault={action.fault} />
      <div class="row">
        <button class="button primary" type="submit" disabled={action.busy}>
          Save
        </button>
        <span class="quiet small" role="status">
          {saved.value && 'Saved.'}
        </span>
        {settings.some(({ key, secret }) => secret && values.secretsSet.includes(key)) && (
          <ActionButton
            action={action}
            class="apart-button"
            work={async () => {
              const cleared = values.secretsSet.map(key => [key, ''])
              await askDaemon('POST /extensions/{id}/settings', {
                id,
                settings: { ...given(), ...(Object.fromEntries(cleared) as { [key: string]: string }) },
              })
              refetch(new Set(['extensions']))
            }}
          >
            Clear the secret values
          </ActionButton>
        )}
      </div>
    </form>
  )
}

const SettingField = ({
  setting: { type, title, description, enum: choices = [], secret, env },
  value,
  isSet,
}: {
  setting: ExtensionSetting
  value: Signal<string>
  isSet: boolean
}) => {
  const hint = [
    description === undefined ? '' : visibleName(description),
    secret ? (isSet ? 'A value is stored; an empty field keeps it.' : 'No value is stored.') : '',
    env === undefined ? '' : `Agents have it as ${env}.`,
  ]
    .filter(Boolean)
    .join(' ')
  const label = visibleName(title)
  if (type === 'boolean') {
    const on = {
      get value() {
        return value.value === 'true'
      },
      set value(next: boolean) {
        value.value = String(next)
      },
    } as Signal<boolean>
    return <CheckField label={hint ? `${label}. ${hint}` : label} value={on} />
  }
  if (type === 'enum')
    return (
      <ChoiceField
        label={label}
        value={value}
        hint={hint}
        choices={[['', 'Default'], ...choices.map(choice => [choice, choice] as const)]}
      />
    )
  return (
    <TextField
      label={label}
      value={value}
      hint={hint}
      type={secret ? 'password' : type === 'number' ? 'number' : 'text'}
      {...(type === 'number' && { step: 'any' })}
    />
  )
}
