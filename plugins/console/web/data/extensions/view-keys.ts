import type { ViewKeyFrame, ViewTextFrame } from '../../../../system/contract.js'
import type { PressedKey } from '../keys.js'

const ALONE = /^(?:Shift|Control|Alt|Meta|AltGraph|Dead|Process|Unidentified|CapsLock)$/

/** The frame that a viewer sends for a key; none for a modifier. */
export const keyFrame = (pressed: PressedKey): ViewKeyFrame | ViewTextFrame | undefined => {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = pressed
  if (ALONE.test(key)) return undefined
  // On many keyboards Ctrl and Alt together, or the third level, type a character.
  if (ctrlKey && altKey && key.length === 1) return { type: 'text', text: key }
  const ctrl = ctrlKey || metaKey
  const shift = shiftKey && (key.length > 1 || ctrl)
  return { type: 'key', key, ...(ctrl && { ctrl }), ...(altKey && { alt: true }), ...(shift && { shift }) }
}
