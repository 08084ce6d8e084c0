import type { Signal } from '@preact/signals'

interface ToggleProps {
  readonly label: string
  readonly on: Signal<boolean>
  readonly class?: string
}

/** A button that is pressed or not. */
export const Toggle = ({ label, on, class: more = '' }: ToggleProps) => (
  <button
    class={`button ${more}`}
    type="button"
    aria-pressed={on.value}
    onClick={() => {
      on.value = !on.value
    }}
  >
    {label}
  </button>
)
