/** A pattern of a list that has these and nothing after them: a plain list as pattern lets a longer one pass. */
export const exactly = (...items: readonly unknown[]): { readonly length: number } => ({
  ...items,
  length: items.length,
})

/** A pattern of a list that begins with these, whatever follows. */
export const beginning = (...items: readonly unknown[]): readonly unknown[] => items
