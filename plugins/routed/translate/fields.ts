/** A JSON object as a caller or a server wrote it. */
export type Fields = { readonly [name: string]: unknown }

/** A request that cannot be said in the other protocol without another meaning, or is none: the caller gets 400. */
export class Unsayable extends Error {}

export const objectIn = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined

export const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const numberIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The objects of a list; refused where one is none. */
export const objectsOf = (value: unknown, path: string): readonly Fields[] =>
  listIn(value).map(
    (each, at) =>
      objectIn(each)
      ?? (() => {
        throw new Unsayable(`${path}.${at}: expected an object`)
      })(),
  )

/** The JSON value of a text; the text itself where it is none. */
export const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
