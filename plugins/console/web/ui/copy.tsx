import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from './icons.js'

const SHOWN_MS = 2_000

/** Copies a selection: without HTTPS browsers have no other way. */
const copySelected = (text: string): boolean => {
  const focused = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  ;(document.querySelector('dialog[open]') ?? document.querySelector('.page') ?? document.body).append(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
  return copied
}

const copyText = async (text: string): Promise<boolean> => {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // Not allowed here, or there is none.
    return copySelected(text)
  }
}

/** A button that copies. */
export interface CopyButtonProps {
  /** What the clipboard holds then; one that takes work is made when it is needed. */
  readonly text: string | (() => string)
  /** What it is, for its name: "the message". */
  readonly what: string
  /** A word beside the icon, where several can be copied. */
  readonly label?: string
}

/** A button that puts a text on the clipboard, and says so. */
export const CopyButton = ({ text, what, label }: CopyButtonProps) => {
  const said = useSignal('')
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = async () => {
    said.value = (await copyText(typeof text === 'string' ? text : text())) ? 'Copied' : 'Select the text to copy it'
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      said.value = ''
    }, SHOWN_MS)
  }
  return (
    <span class="copy">
      <button type="button" title={`Copy ${what}`} aria-label={`Copy ${what}`} onClick={() => void copy()}>
        <Icon name={said.value ? 'done' : 'copy'} />
        {label}
      </button>
      <span class="small" role="status">
        {said.value}
      </span>
    </span>
  )
}

interface CopyableProps {
  readonly text: string
  readonly what: string
  /** How it is shown, where that is not the text itself. */
  readonly children?: ComponentChildren
}

/** An id, an address or a command in a line, which can be copied. */
export const Copyable = ({ text, what, children = text }: CopyableProps) => (
  <span class="copyable">
    <code class="wraps">{children}</code>
    <CopyButton text={text} what={what} />
  </span>
)
