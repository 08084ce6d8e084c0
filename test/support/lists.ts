/** A pattern that matches a list with exactly these items: a plain list as pattern also matches a longer one. */
export const exactly = (...items: readonly unknown[]): { readonly length: number } => ({
  ...items,
  length: items.length,
})

/** A pattern that matches a list that begins with these items. */
export const beginning = (...items: readonly unknown[]): readonly unknown[] => items
