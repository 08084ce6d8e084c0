import type { Signal } from '@preact/signals'

interface SearchFieldProps {
  readonly label: string
  readonly value: Signal<string>
  readonly placeholder?: string
  readonly class?: string
  /** The key of searching leads to it. */
  readonly main?: boolean
}

/** Words to search a list for, without a heading of its own. */
export const SearchField = ({
  label,
  value,
  placeholder = label,
  class: more = '',
  main = false,
}: SearchFieldProps) => (
  <input
    class={`input ${more}`}
    type="search"
    aria-label={label}
    placeholder={placeholder}
    data-key={main ? 'search' : undefined}
    value={value.value}
    onInput={event => {
      value.value = event.currentTarget.value
    }}
  />
)
