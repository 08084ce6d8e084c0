import { asData, REDACTED } from '../access/redact.js'

const MOST_WORDS = 300

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

const messageIn = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return messageIn(value[0])
  if (typeof value !== 'object' || value === null) return undefined
  const { error, message, detail } = value as { error?: unknown; message?: unknown; detail?: unknown }
  return messageIn(error) ?? messageIn(message) ?? messageIn(detail)
}
