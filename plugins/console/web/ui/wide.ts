/** Whether there is room for a list beside what it leads to; the style sheets change at the same width. */
export const isWide = (): boolean => matchMedia('(min-width: 761px)').matches
