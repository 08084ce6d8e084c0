import type { ViewMenu } from './contract.js'

const MOST_OPTIONS = 1000
const MOST_LABEL = 200

/**
 * Runs in every document before its own scripts, and keeps drop-downs from opening the browser's list.
 *
 * Pictures of the page do not contain that list, and while it is open it takes all mouse and keyboard input.
 */
export const NO_LISTS = `(() => {
  const dropDown = event => {
    const at = event.composedPath()[0]
    const select = at instanceof Element ? at.closest('select') : undefined
    return select && !select.multiple && select.size <= 1 && !select.disabled ? select : undefined
  }
  addEventListener('mousedown', event => {
    const select = dropDown(event)
    if (!select || event.button !== 0) return
    event.preventDefault()
    select.focus()
  }, true)
  addEventListener('keydown', event => {
    const opens = [' ', 'Enter', 'F4'].includes(event.key) || (event.altKey && /^Arrow(Up|Down)$/.test(event.key))
    if (opens && dropDown(event)) event.preventDefault()
  }, true)
})()`

const FOCUSED = `
  let select = document.activeElement
  while (select?.shadowRoot?.activeElement) select = select.shadowRoot.activeElement
  if (!(select instanceof HTMLSelectElement) || select.multiple || select.size > 1 || select.disabled) return undefined
`

/** The focused drop-down, with its position in the page's pixels. */
export const MENU = `(() => {${FOCUSED}
  let { x, y, width, height } = select.getBoundingClientRect()
  for (let view = window; view.frameElement; view = view.parent) {
    const frame = view.frameElement.getBoundingClientRect()
    x += frame.x + view.frameElement.clientLeft
    y += frame.y + view.frameElement.clientTop
  }
  const options = Array.from(select.options).slice(0, ${MOST_OPTIONS}).map(option => ({
    label: option.label.slice(0, ${MOST_LABEL}), disabled: option.disabled || option.parentElement?.disabled === true,
  }))
  return { options, selected: select.selectedIndex, rect: { x, y, width, height } }
})()`

/** Chooses an option of the focused drop-down; returns whether that was possible. */
export const choose = (index: number): string => `(() => {${FOCUSED}
  const option = select.options[${index}]
  if (!option || option.disabled || option.parentElement?.disabled) return undefined
  if (select.selectedIndex !== ${index}) {
    select.selectedIndex = ${index}
    select.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
    select.dispatchEvent(new Event('change', { bubbles: true }))
  }
  return true
})()`

/** The selected text, in the page or in a field other than a password. */
export const SELECTED = `(() => {
  const field = document.activeElement
  const typed = field instanceof HTMLTextAreaElement || (field instanceof HTMLInputElement && field.type !== 'password')
  const text = typed && field.selectionStart !== null
    ? field.value.slice(field.selectionStart, field.selectionEnd)
    : String(getSelection())
  return text.slice(0, 100000)
})()`

/** The drop-down as it is shown; undefined when the point is not on it. */
export const menuAt = (found: unknown, { x, y }: { readonly x: number; readonly y: number }): ViewMenu | undefined => {
  const menu = found as ViewMenu | undefined
  if (!menu) return undefined
  const { rect } = menu
  const inside = x >= rect.x && x <= rect.x + rect.width && y >= rect.y && y <= rect.y + rect.height
  return inside ? menu : undefined
}
