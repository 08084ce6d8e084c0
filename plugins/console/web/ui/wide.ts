/** Whether there is space for a list beside its content; the style sheets change at the same width. */
export const isWide = (): boolean => matchMedia('(min-width: 761px)').matches
