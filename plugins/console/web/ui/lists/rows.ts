/** Moves the focus to another row of the page's list, marked by `[data-row]`. */
export const moveRow = (by: 1 | -1): void => {
  const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')]
  const at = rows.indexOf(document.activeElement?.closest<HTMLElement>('[data-row]') ?? document.body)
  const next = at < 0 ? rows.at(by > 0 ? 0 : -1) : rows[at + by]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

/** The marker of the focused row. */
export const focusedRow = (): string | undefined =>
  document.activeElement?.closest<HTMLElement>('[data-row]')?.dataset.row

/** The most frames to wait for a page that was just gone to. */
const FRAMES = 180

/** Focuses the element of a key as soon as the page at this address shows it. */
export const focusSoon = (name: 'search' | 'composer', { hash } = location, frames = FRAMES): void => {
  requestAnimationFrame(() => {
    if (location.hash !== hash || usePart(name, 'focus') || frames === 0) return
    focusSoon(name, { hash } as Location, frames - 1)
  })
}

/** Focuses or presses the element of a key; returns whether there is one. */
export const usePart = (name: 'search' | 'composer' | 'land' | 'new', how: 'focus' | 'click'): boolean => {
  const part = document.querySelector<HTMLElement>(`[data-key=${name}]`)
  // A pressed element also takes the focus, which returns there from a dialog.
  part?.focus()
  if (how === 'click') part?.click()
  return part !== null
}
