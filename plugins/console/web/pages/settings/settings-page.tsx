import { useSignal } from '@preact/signals'
import type { SettingField, SettingKey, Settings, SettingsGiven } from '../../../../settings/contract.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { FaultLine, Loaded, PageFrame, Tabs } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { AutomaticModelsTab } from './automatic-models-tab.js'
import { SavingsTab } from './savings-tab.js'
import { SearchModelTarget } from './search-model-target.js'
import { settingSections, settingText, settingValue } from './setting-fields.js'
import { SettingInput } from './setting-input.js'
import { StandingRulesTab } from './standing-rules-tab.js'

const APPLIES: { readonly [applies in SettingField['applies']]: string } = {
  now: '',
  'next-turn': 'Counts from the next turn on.',
  'next-conversation': 'Counts for the next conversation.',
}

type Edits = { readonly [key in SettingKey]?: string }

/** Saves edited settings, unless one of them was changed elsewhere after they were shown. */
const patch = async (
  shown: Settings,
  edited: readonly SettingKey[],
  change: { set: SettingsGiven; unset: SettingKey[] },
): Promise<void> => {
  for (let attempt = 1; ; attempt++) {
    // A patch without keys changes nothing, and returns the current settings with their revision.
    const { settings, revision } = await askDaemon('POST /settings/patch', {})
    if (edited.some(key => settingText(settings[key]) !== settingText(shown[key]))) {
      refetch(new Set(['settings']))
      throw new Refusal('conflict', 'somebody else changed one of these settings a moment ago: look at it, then save')
    }
    try {
      await askDaemon('POST /settings/patch', { ...change, revision })
      return
    } catch (error) {
      // Another setting changed in between: that is no conflict with this form.
      if (!(error instanceof Refusal && error.reason === 'conflict') || attempt === 3) throw error
    }
  }
}

interface SettingsFormProps {
  readonly settings: Settings
  readonly fields: readonly SettingField[]
  readonly mayEdit: boolean
}

const SettingsForm = ({ settings, fields, mayEdit }: SettingsFormProps) => {
  const sections = settingSections(fields)
  const all = new Map(sections.flatMap(([, list]) => list.map(field => [field.key, field] as const)))
  const edits = useSignal<Edits>({})
  /** The value of each edited setting when the person began to edit it. */
  const bases = useSignal<Edits>({})
  const saved = useSignal(false)
  const action = useAction()
  const editedKeys = () => [...all.keys()].filter(key => edits.value[key] !== undefined)
  const edited = editedKeys()
  const clashes = edited.filter(key => bases.value[key] !== settingText(settings[key]))
  const drop = (keys: readonly SettingKey[]) => {
    const without = (all: Edits) =>
      Object.fromEntries(Object.entries(all).filter(([key]) => !keys.includes(key as never)))
    edits.value = without(edits.value)
    bases.value = without(bases.value)
  }
  const edit = (key: SettingKey, text: string) => {
    saved.value = false
    const base = bases.value[key] ?? settingText(settings[key])
    if (text === base && base === settingText(settings[key])) return drop([key])
    bases.value = { ...bases.value, [key]: base }
    edits.value = { ...edits.value, [key]: text }
  }
  const save = () =>
    action.run(async () => {
      // Reads the current values, so that text typed since the last render is saved too.
      const edited = editedKeys()
      if (edited.length === 0) return
      const entries = edited.map(key => [key, settingValue(all.get(key)!.type, edits.peek()[key]!)] as const)
      const usual = entries.filter(([key, value]) => settingText(value) === settingText(all.get(key)!.default))
      const unset = usual.map(([key]) => key)
      // Edited values have the type of their setting, because the form has one kind of input for each.
      const set = Object.fromEntries(entries.filter(([key]) => !unset.includes(key))) as SettingsGiven
      await patch(settings, edited, { set, unset })
      drop(edited)
      saved.value = true
      refetch(new Set(['settings']))
    })
  return (
    <form
      class="sections"
      onSubmit={event => {
        event.preventDefault()
        void save()
      }}
    >
      {sections.map(([section, list]) => (
        <section key={section} aria-label={section}>
          <h2>{section}</h2>
          <ul class="items">
            {list.map(field => {
              const { key, title, description, changed } = field
              const now = settingText(settings[key])
              return (
                <li key={key} class="item setting">
                  <div class="item-main">
                    <div class="item-title">
                      {title}
                      {edits.value[key] !== undefined && <span class="tag busy">Not saved</span>}
                    </div>
                    <div class="quiet small" id={`${key}-about`}>
                      {description} {APPLIES[field.applies]}
                    </div>
                    <div class="quiet small">
                      {changed ? 'Set for this sandbox' : 'As usual'} · <span class="mono">{key}</span>
                    </div>
                    {clashes.includes(key) && (
                      <p class="notice warn" role="alert">
                        Somebody else set this to “{now || 'nothing'}” meanwhile. Saving replaces it.{' '}
                        <button class="button" type="button" onClick={() => drop([key])}>
                          Take theirs
                        </button>
                      </p>
                    )}
                  </div>
                  <div class="setting-input">
                    <SettingInput
                      field={field}
                      text={edits.value[key] ?? now}
                      disabled={!mayEdit}
                      edit={text => edit(key, text)}
                    />
                    {key === 'searchModel' && (edits.value[key] ?? now) !== '' && (
                      <SearchModelTarget model={edits.value[key] ?? now} />
                    )}
                  </div>
                </li>
              )
            })}
          </ul>
        </section>
      ))}
      <div class="save-bar">
        <FaultLine fault={action.fault} />
        {mayEdit ? (
          <div class="row">
            <button class="button primary" type="submit" disabled={action.busy || edited.length === 0}>
              Save
            </button>
            <button class="button" type="button" disabled={edited.length === 0} onClick={() => drop(edited)}>
              Undo
            </button>
            <span class="quiet small" role="status">
              {edited.length > 0
                ? `${edited.length} ${edited.length === 1 ? 'setting is' : 'settings are'} not saved.`
                : saved.value && 'Saved. Turns that run keep what they started with.'}
            </span>
          </div>
        ) : (
          <p class="quiet">Maintainers and the owner change settings.</p>
        )}
      </div>
    </form>
  )
}

const TABS = [
  ['all', 'Settings'],
  ['rules', 'Rules'],
  ['models', 'Models now'],
  ['savings', 'Savings'],
] as const

const FormTab = ({ mayEdit }: { mayEdit: boolean }) => {
  const settings = useQuery('settings', ['settings'], () => askDaemon('GET /settings'))
  const schema = useQuery('settings-schema', ['settings'], () => askDaemon('GET /settings/schema'))
  return (
    <Loaded query={schema}>
      {({ fields }) => (
        <Loaded query={settings}>{data => <SettingsForm settings={data} fields={fields} mayEdit={mayEdit} />}</Loaded>
      )}
    </Loaded>
  )
}

/** How agents behave in this sandbox. */
export const SettingsPage = ({ rest: [tab = 'all'] }: PageProps) => {
  const mayEdit = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame title="Settings">
      <Tabs page="settings" label="Parts of the settings" current={tab} tabs={TABS} />
      {tab === 'rules' ? (
        <StandingRulesTab mayEdit={mayEdit} />
      ) : tab === 'models' ? (
        <AutomaticModelsTab />
      ) : tab === 'savings' ? (
        <SavingsTab />
      ) : (
        <FormTab mayEdit={mayEdit} />
      )}
    </PageFrame>
  )
}
