/** A small drawing for a card, of lines that are seen on light and on dark ground: SVG paths in a square of 24. */
export const lineArt = (...paths: readonly string[]): string =>
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#64748b" stroke-width="1.5" '
  + `stroke-linecap="round" stroke-linejoin="round"><path d="${paths.join(' ')}"/></svg>`
