const SAID = 'It moved as you pressed, so nothing was done: press again.'
const SAID_MS = 5000

/** Says for 5 s why a press did nothing, at the lower edge of the window, where it moves nothing. */
export const sayDropped = (): void => {
  const sign = document.createElement('p')
  sign.className = 'notice'
  sign.role = 'status'
  sign.style.cssText = 'position:fixed;inset-block-end:1rem;inset-inline:1rem;z-index:10;pointer-events:none'
  sign.textContent = SAID
  document.body.append(sign)
  setTimeout(() => sign.remove(), SAID_MS)
}
