import { asData, REDACTED } from '../access/redact.js'

const MOST_WORDS = 300
/** Messages are wrapped a few times, not more. */
const DEEPEST = 10

/** Replaces these values in a text. */
export const withoutValues = (text: string, values: readonly string[]): string =>
  values.filter(value => value.length > 3).reduce((done, value) => done.replaceAll(value, REDACTED), text)

/** A server's error message on one line: from its JSON, else its text; empty for an HTML page. */
export const wordsOfServer = (body: string, values: readonly string[] = []): string => {
  const words = messageIn(parsed(body)) ?? (/^\s*</.test(body) ? '' : body)
  return asData(withoutValues(words, values), MOST_WORDS).trim()
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const messageIn = (value: unknown, depth = 0): string | undefined => {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null || depth === DEEPEST) return undefined
  const inner = (found: unknown) => messageIn(found, depth + 1)
  if (Array.isArray(value)) return inner(value[0])
  const { error, message, detail } = value as { error?: unknown; message?: unknown; detail?: unknown }
  return inner(error) ?? inner(message) ?? inner(detail)
}
