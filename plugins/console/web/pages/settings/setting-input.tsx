import type { ShownField } from './setting-fields.js'

const LONG = 200

interface SettingInputProps {
  readonly field: ShownField
  readonly text: string
  readonly disabled: boolean
  readonly edit: (text: string) => void
}

/** The control of one setting, by the type of its value. */
export const SettingInput = ({ field, text, disabled, edit }: SettingInputProps) => {
  const { key, type, title, min, max = 0, values = [] } = field
  const shared = { 'aria-label': title, 'aria-describedby': `${key}-about`, disabled }
  switch (type) {
    case 'boolean':
      return (
        <input
          {...shared}
          class="switch"
          type="checkbox"
          checked={text === 'true'}
          onChange={event => edit(String(event.currentTarget.checked))}
        />
      )
    case 'number':
      return (
        <span class="row">
          <input
            {...shared}
            class="input short"
            type="number"
            required
            min={min}
            max={max}
            step="any"
            value={text}
            onInput={event => edit(event.currentTarget.value)}
          />
          <span class="quiet small">
            {min} to {max}
          </span>
        </span>
      )
    case 'enum':
      return (
        <select {...shared} class="input" value={text} onChange={event => edit(event.currentTarget.value)}>
          {values.map(value => (
            <option key={value} value={value}>
              {value}
            </option>
          ))}
        </select>
      )
    case 'string':
      if (max <= LONG)
        return (
          <input
            {...shared}
            class="input"
            type="text"
            maxLength={max}
            spellcheck={false}
            value={text}
            onInput={event => edit(event.currentTarget.value)}
          />
        )
  }
  return (
    <textarea
      {...shared}
      class="input mono"
      rows={4}
      spellcheck={false}
      {...(type === 'string' && { maxLength: max })}
      placeholder={type === 'list' ? 'one a line' : type === 'object' ? 'name: value' : undefined}
      value={text}
      onInput={event => edit(event.currentTarget.value)}
    />
  )
}
