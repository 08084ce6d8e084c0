import type { ComponentChildren } from 'preact'
import type { ActionState } from './action.js'

interface ActionButtonProps {
  readonly action: ActionState
  readonly work: () => Promise<unknown>
  /** More classes than `button`. */
  readonly class?: string
  readonly disabled?: boolean
  /** The target of the action, for screen readers. */
  readonly about?: string
  readonly title?: string
  readonly 'data-key'?: string
  readonly children: ComponentChildren
}

/** A button that runs an action, and cannot be pressed while that runs. */
export const ActionButton = ({
  action,
  work,
  class: more = '',
  disabled = false,
  about,
  children,
  ...rest
}: ActionButtonProps) => (
  <button
    {...rest}
    class={`button ${more}`}
    type="button"
    disabled={action.busy || disabled}
    onClick={() => void action.run(work)}
  >
    {children}
    {about && <span class="visually-hidden"> {about}</span>}
  </button>
)
