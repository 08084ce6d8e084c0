/** Moves the focus to another row of the page's list: `[data-row]` marks what takes it. */
export const moveRow = (by: 1 | -1): void => {
  const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')]
  const at = rows.indexOf(document.activeElement?.closest<HTMLElement>('[data-row]') ?? document.body)
  const next = at < 0 ? rows.at(by > 0 ? 0 : -1) : rows[at + by]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

/** The row that has the focus, by what it is marked with. */
export const focusedRow = (): string | undefined =>
  document.activeElement?.closest<HTMLElement>('[data-row]')?.dataset.row

/** Focuses or presses the part of the page that a key stands for; says whether there is one. */
export const usePart = (name: 'search' | 'composer' | 'land' | 'new', how: 'focus' | 'click'): boolean => {
  const part = document.querySelector<HTMLElement>(`[data-key=${name}]`)
  // Also what is pressed takes the focus: it returns there from a dialog.
  part?.focus()
  if (how === 'click') part?.click()
  return part !== null
}
