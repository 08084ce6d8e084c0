import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { useAction } from './action.js'
import { FaultLine } from './page.js'

interface DialogProps {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
}

/** A button may be disabled for a moment after a dialog closed. */
const FRAMES = 60

/**
 * A closed dialog takes the focus with it: where nothing else took it, it returns to what opened the dialog, or to what
 * the page shows in its place by now.
 */
const giveBack = (opener: Element | null, frames: number): void => {
  awaited = opener
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) nowInPlaceOf(opener)?.focus()
    if (document.activeElement === document.body && frames > 0) giveBack(opener, frames - 1)
    else awaited = null
  })
}

/** What gets the focus of a closed dialog soon: a dialog that opens before that returns it there too. */
let awaited: Element | null = null

/** An element, or the one that replaced it when the page was rendered again. */
const nowInPlaceOf = (element: Element | null): HTMLElement | null => {
  if (!(element instanceof HTMLElement)) return null
  const { key } = element.dataset
  return element.isConnected || key === undefined ? element : document.querySelector(`[data-key="${CSS.escape(key)}"]`)
}

/** A question or a form in front of the page; Escape and another address close it. */
export const Dialog = ({ title, close, children }: DialogProps) => {
  // Asked while it is rendered: by the time of the effect the page may have replaced or disabled it.
  const opener = useRef(document.activeElement === document.body ? awaited : document.activeElement)
  const box = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const isShown = useRef(true)
  // Escape counts at once: that the browser has closed it is said a frame later, when another one may be in its place.
  const leaveShown = ({ target }: Event) => target === box.current && isShown.current && close()
  // Before the next key: until a dialog is open, keys act on the page behind it.
  useLayoutEffect(() => {
    box.current?.showModal()
    const { hash } = location
    // The event of the navigation before may come after the dialog has opened: keys go before it.
    const leave = () => location.hash !== hash && close()
    addEventListener('hashchange', leave)
    return () => {
      isShown.current = false
      removeEventListener('hashchange', leave)
      giveBack(opener.current, FRAMES)
    }
  }, [])
  return (
    <dialog ref={box} aria-labelledby={heading} onCancel={leaveShown} onClose={leaveShown}>
      <div class="stack">
        <h2 id={heading}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** Shows a result until the person dismisses it. */
export const DoneDialog = ({ title, close, children }: DialogProps) => (
  <Dialog title={title} close={close}>
    {children}
    <div class="card-actions">
      <button class="button" type="button" onClick={close}>
        Done
      </button>
    </div>
  </Dialog>
)

interface DialogFormProps extends DialogProps {
  readonly verb: string
  readonly danger?: boolean
  readonly ready?: boolean
  /** Closes the dialog when it succeeds, unless its result is `stays`. */
  readonly work: () => Promise<unknown>
}

/** A dialog with one action: it stays open with the reason if that fails. */
export const DialogForm = ({ title, close, verb, danger = false, ready = true, work, children }: DialogFormProps) => {
  const action = useAction()
  return (
    <Dialog title={title} close={close}>
      <form
        class="stack"
        onSubmit={event => {
          event.preventDefault()
          void action.run(async () => (await work()) === 'stays' || close())
        }}
      >
        {children}
        <FaultLine fault={action.fault} />
        <div class="card-actions">
          <button class={`button ${danger ? 'danger' : 'primary'}`} type="submit" disabled={action.busy || !ready}>
            {verb}
          </button>
          <button class="button apart-button" type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface FormButtonProps {
  readonly label: string
  /** The target of the action, for screen readers. */
  readonly about?: string
  readonly primary?: boolean
  /** It stands apart from the buttons before it. */
  readonly apart?: boolean
  /** The form is open from the beginning. */
  readonly opened?: boolean
  readonly form: (close: () => void) => ComponentChildren
}

/** A button that opens a form. */
export const FormButton = ({ label, about, primary = false, apart = false, opened = false, form }: FormButtonProps) => {
  const open = useSignal(opened)
  return (
    <>
      <button
        class={`button${primary ? ' primary' : ''}${apart ? ' apart-button' : ''}`}
        type="button"
        onClick={() => {
          open.value = true
        }}
      >
        {label}
        {about && <span class="visually-hidden"> {about}</span>}
      </button>
      {open.value
        && form(() => {
          open.value = false
        })}
    </>
  )
}

interface AskButtonProps extends Omit<DialogFormProps, 'close' | 'verb' | 'danger' | 'ready'> {
  readonly label: string
  readonly about: string
  readonly apart?: boolean
  readonly verb?: string
}

/** A button that asks for confirmation. */
export const AskButton = ({ label, about, apart = false, verb = label, ...form }: AskButtonProps) => (
  <FormButton
    label={label}
    about={about}
    apart={apart}
    form={close => <DialogForm {...form} verb={verb} danger close={close} />}
  />
)
