import type { Signal } from '@preact/signals'
import { useSignal } from '@preact/signals'
import { useEffect, useId } from 'preact/hooks'
import { CopyButton } from './copy.js'
import type { ComponentChildren } from 'preact'

interface TextFieldProps {
  readonly label: string
  readonly value: Signal<string>
  readonly type?: 'text' | 'password' | 'email' | 'number' | 'datetime-local' | 'date' | 'search' | 'url'
  readonly hint?: ComponentChildren
  readonly required?: boolean
  readonly rows?: number
  readonly placeholder?: string
  readonly pattern?: string
  readonly step?: string
  readonly min?: string
  readonly max?: string
  readonly name?: string
  readonly maxLength?: number
  readonly autocomplete?: string
}

const Hint = ({ id, hint }: { id: string; hint: ComponentChildren }) =>
  hint ? (
    <span class="quiet small" id={`${id}-hint`}>
      {hint}
    </span>
  ) : null

/** A text, number or time to enter. */
export const TextField = ({ label, value, hint, rows, type = 'text', required = false, ...more }: TextFieldProps) => {
  const id = useId()
  const shared = {
    id,
    required,
    spellcheck: false,
    'aria-describedby': hint ? `${id}-hint` : undefined,
    value: value.value,
  }
  return (
    <div class="field">
      <label for={id}>
        {label}
        {!required && type !== 'search' && type !== 'date' && <span class="quiet small"> optional</span>}
      </label>
      {rows ? (
        <textarea
          {...shared}
          rows={rows}
          placeholder={more.placeholder}
          onInput={event => {
            value.value = event.currentTarget.value
          }}
        />
      ) : (
        <input
          {...more}
          {...shared}
          // The types of elements tell each kind of input apart; this field serves several.
          type={type as 'text'}
          autocomplete={more.autocomplete ?? (type === 'password' ? 'new-password' : 'off')}
          onInput={event => {
            value.value = event.currentTarget.value
          }}
        />
      )}
      <Hint id={id} hint={hint} />
    </div>
  )
}

interface ChoiceFieldProps<T extends string> {
  readonly label: string
  readonly value: Signal<T>
  readonly choices: readonly (readonly [value: T, label: string])[]
  readonly hint?: ComponentChildren
}

/** One of several values. */
export const ChoiceField = <T extends string>({ label, value, choices, hint }: ChoiceFieldProps<T>) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        aria-describedby={hint ? `${id}-hint` : undefined}
        value={value.value}
        onChange={event => {
          value.value = event.currentTarget.value as T
        }}
      >
        {choices.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
      <Hint id={id} hint={hint} />
    </div>
  )
}

/** Yes or no. */
export const CheckField = ({ label, value }: { label: ComponentChildren; value: Signal<boolean> }) => (
  <label class="check">
    <input
      type="checkbox"
      checked={value.value}
      onChange={event => {
        value.value = event.currentTarget.checked
      }}
    />
    <span>{label}</span>
  </label>
)

/** A text after a pause in typing. */
export const useSettled = (text: string, ms = 250): string => {
  const settled = useSignal(text)
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = text
    }, ms)
    return () => clearTimeout(timer)
  }, [text])
  return settled.value
}

/** A value that is shown once, to be copied. */
export const OnceValue = ({ label, value }: { label: string; value: string }) => {
  return (
    <div class="stack">
      <label class="field">
        {label}
        <input class="mono" readonly value={value} onFocus={event => event.currentTarget.select()} />
      </label>
      <CopyButton text={value} what={label} />
    </div>
  )
}
