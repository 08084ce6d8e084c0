const REFERENCE = /\{\{secret:([A-Za-z0-9_./-]+)\}\}/g

/** The names that a text refers to, each once and in order. */
export const referencedNames = (text: string): string[] => [
  ...new Set([...text.matchAll(REFERENCE)].map(([, name]) => name!)),
]

/** The text with what stands for each name in place of its references. */
export const withReferences = (text: string, of: (name: string) => string): string =>
  text.replace(REFERENCE, (_, name: string) => of(name))

/** The reference that begins at a place of a text, if one does. */
export const referenceAt = (text: string, at: number): { readonly name: string; readonly end: number } | undefined => {
  if (text.charCodeAt(at) !== 0x7b || !text.startsWith('{{secret:', at)) return undefined
  const [whole, name] = new RegExp(REFERENCE.source, 'y').exec(text.slice(at)) ?? []
  return whole === undefined ? undefined : { name: name!, end: at + whole.length }
}
