import type { Argument } from './verb.js'

/** A command that does not parse; the message says what was expected and found. */
export class Malformed extends Error {}

/** Says what was expected and what was found. */
export const malformed = (form: string, found: string): never => {
  const shown = found.length > 60 ? `${found.slice(0, 60)}…` : found
  throw new Malformed(`expected ${form}, found ${found === '' ? 'nothing' : `"${shown}"`}`)
}

/** The text of the line and of the lines below it, as one. */
export const joined = ({ text, lines }: Argument): string =>
  text === '' ? lines.join('\n') : lines.length === 0 ? text : `${text}\n${lines.join('\n')}`

/** A text that must not be empty. */
export const needed = (form: string, text: string): string => (text === '' ? malformed(form, '') : text)

/** The lines as the content of a file. */
export const content = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')

/** A whole number from 0 to `most`. */
export const whole = (form: string, text: string | undefined, most: number): number =>
  text !== undefined && /^\d{1,13}$/.test(text) && Number(text) <= most ? Number(text) : malformed(form, text ?? '')

/** The words of a text, at most so many: one more is malformed. */
export const parts = (form: string, text: string, most: number): string[] => {
  const found = text === '' ? [] : text.split(/\s+/, most + 1)
  return found.length > most ? malformed(form, text) : found
}

/** One of a few words. */
export const oneOf = <Word extends string>(form: string, text: string, words: readonly Word[]): Word =>
  words.find(word => word === text) ?? malformed(form, text)
