import { useSignal } from '@preact/signals'
import type { SettingKey, Settings, SettingsGiven } from '../../../../settings/contract.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { FaultLine, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { KNOWN_SETTINGS, settingText, settingValue, type KnownSetting } from './known-settings.js'

const KEYS = Object.keys(KNOWN_SETTINGS) as SettingKey[]
const SECTIONS = [...new Set(KEYS.map(key => KNOWN_SETTINGS[key].section))]

type Edits = { readonly [key in SettingKey]?: string }

interface SettingFieldProps {
  readonly name: SettingKey
  readonly setting: KnownSetting
  readonly text: string
  readonly disabled: boolean
  readonly edit: (text: string) => void
}

const SettingInput = ({ name, setting: { input, label }, text, disabled, edit }: SettingFieldProps) => {
  const described = `${name}-about`
  switch (input.kind) {
    case 'switch':
      return (
        <input
          class="switch"
          type="checkbox"
          aria-label={label}
          aria-describedby={described}
          disabled={disabled}
          checked={text === 'true'}
          onChange={event => edit(String(event.currentTarget.checked))}
        />
      )
    case 'number':
      return (
        <span class="row">
          <input
            class="input short"
            type="number"
            required
            aria-label={label}
            aria-describedby={described}
            disabled={disabled}
            min={input.min}
            max={input.max}
            value={text}
            onInput={event => edit(event.currentTarget.value)}
          />
          <span class="quiet small">{input.unit}</span>
        </span>
      )
    case 'choice':
      return (
        <select
          class="input"
          aria-label={label}
          aria-describedby={described}
          disabled={disabled}
          value={text}
          onChange={event => edit(event.currentTarget.value)}
        >
          {input.choices.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      )
    case 'lines':
    case 'pairs':
      return (
        <textarea
          class="input mono"
          rows={4}
          aria-label={label}
          aria-describedby={described}
          disabled={disabled}
          placeholder={input.placeholder}
          spellcheck={false}
          value={text}
          onInput={event => edit(event.currentTarget.value)}
        />
      )
  }
}

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
  readonly mayEdit: boolean
}

const SettingsForm = ({ settings, mayEdit }: SettingsFormProps) => {
  const edits = useSignal<Edits>({})
  /** The value of each edited setting when the person began to edit it. */
  const bases = useSignal<Edits>({})
  const saved = useSignal(false)
  const action = useAction()
  const editedKeys = () => KEYS.filter(key => edits.value[key] !== undefined)
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
      const entries = edited.map(key => [key, settingValue(KNOWN_SETTINGS[key].input, edits.peek()[key]!)] as const)
      const usual = entries.filter(
        ([key, value]) => settingText(value as never) === settingText(KNOWN_SETTINGS[key].usual as never),
      )
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
      {SECTIONS.map(section => (
        <section key={section} aria-label={section}>
          <h2>{section}</h2>
          <ul class="items">
            {KEYS.filter(key => KNOWN_SETTINGS[key].section === section).map(key => {
              const setting = KNOWN_SETTINGS[key]
              const now = settingText(settings[key])
              const usual = now === settingText(setting.usual as never)
              return (
                <li key={key} class="item setting">
                  <div class="item-main">
                    <div class="item-title">
                      {setting.label}
                      {edits.value[key] !== undefined && <span class="tag busy">Not saved</span>}
                    </div>
                    <div class="quiet small" id={`${key}-about`}>
                      {setting.about}
                    </div>
                    <div class="quiet small">
                      {usual ? 'As usual' : 'Set for this sandbox'} · <span class="mono">{key}</span>
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
                      name={key}
                      setting={setting}
                      text={edits.value[key] ?? now}
                      disabled={!mayEdit}
                      edit={text => edit(key, text)}
                    />
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

/** How agents behave in this sandbox. */
export const SettingsPage = (_: PageProps) => {
  const settings = useQuery('settings', ['settings'], () => askDaemon('GET /settings'))
  return (
    <PageFrame title="Settings">
      <Loaded query={settings}>
        {data => <SettingsForm settings={data} mayEdit={reaches(person.value?.role, 'maintainer')} />}
      </Loaded>
    </PageFrame>
  )
}
