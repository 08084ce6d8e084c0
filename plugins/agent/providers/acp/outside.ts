import { SELECTORS, unseenBut } from '../../../../sdk/unseen.js'

/** Reads untrusted values field by field; a value of an unexpected type counts as absent. */

const UNSEEN = unseenBut(String.raw`\u200c\u200d` + SELECTORS)

/** The fields of an object, or none. */
export const fieldsOf = (value: unknown): { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as { [name: string]: unknown }) : {}

/** The first items of a list, or none. */
export const listOf = (value: unknown, most: number): readonly unknown[] =>
  Array.isArray(value) ? value.slice(0, most) : []

/** A text, cut to at most `most` characters. */
export const textField = (value: unknown, most: number): string | undefined =>
  typeof value === 'string' ? (value.length > most ? value.slice(0, most) : value).toWellFormed() : undefined

/** A text on one line, without characters that nobody sees. */
export const lineField = (value: unknown, most: number): string | undefined =>
  textField(value, most)?.replace(/\s+/g, ' ').replace(UNSEEN, '').trim()

/** A whole number from 0. */
export const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= 4_294_967_295 ? value : undefined

/** The value, when it is one of these. */
export const choiceField = <T extends string>(value: unknown, known: readonly T[]): T | undefined =>
  known.find(each => each === value)
