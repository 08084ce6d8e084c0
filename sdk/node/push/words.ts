import { asData } from '../access/redact.js'

const MOST_PROMPT = 90

/** A text as one line of at most so many characters, cut at the end of a word. */
export const cutAtWord = (text: string, most: number): string => {
  const clean = asData(text, 4 * most).trim()
  const characters = [...clean]
  if (characters.length <= most) return clean
  const cut = characters.slice(0, most - 1).join('')
  const end = cut.search(/\s+\S*$/u)
  return `${end > most / 2 ? cut.slice(0, end) : cut}…`
}

/** The words of a prompt or a card for a notification. */
export const promptWords = (text: string): string => cutAtWord(text, MOST_PROMPT)
