import { commandFor, commandsNow, letterKeys, readLetterKeys, strokeOf } from '../../data/keys.js'
import { scrollByKey } from './scroll-keys.js'

/** The second key of `g f` must follow within this time. */
const SEQUENCE_MS = 1_500

/** Whether a key without a modifier is typed into a field; read-only text takes none. */
const isTypedInto = (target: Element): boolean =>
  target.matches('input:not([type=checkbox], [type=radio]), textarea, select')
  || (target instanceof HTMLElement && target.isContentEditable && !target.closest('.cm-content:not([data-typed])'))

/** Starts commands by their keys, after dialogs and elements that take every key. */
export const watchKeys = (): void => {
  readLetterKeys()
  let before = ''
  let beganAt = 0
  addEventListener('keydown', event => {
    if (event.defaultPrevented || event.isComposing || /^(?:Shift|Control|Alt|Meta)$/.test(event.key)) return
    const [target] = event.composedPath()
    if (target instanceof Element && target.closest('[data-keys=all]')) return
    if (document.querySelector('dialog[open]')) return
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey
    if (plain && target instanceof Element && isTypedInto(target)) {
      before = ''
      // Escape leaves a field, so that keys act on the page again.
      if (event.key === 'Escape' && target instanceof HTMLElement) target.blur()
      else scrollByKey(event, target)
      return
    }
    if (plain && event.key.length === 1 && event.key !== ' ' && !letterKeys.value) return
    if (Date.now() - beganAt > SEQUENCE_MS) before = ''
    const found = commandFor(commandsNow(), before, strokeOf(event)) ?? commandFor(commandsNow(), '', strokeOf(event))
    if (!found) {
      before = ''
      if (target instanceof Element) scrollByKey(event, target)
      return
    }
    event.preventDefault()
    before = found === 'waits' ? strokeOf(event) : ''
    beganAt = Date.now()
    if (found !== 'waits') found.run()
  })
}
