import { validateHeaderName, validateHeaderValue } from 'node:http'
import { refuse } from '../../sdk/index.js'

/** What a request of the daemon sets itself. */
const CLOSED = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'upgrade',
  'expect',
  'te',
  'trailer',
])

interface HeaderLine {
  readonly name: string
  readonly value: string
}

/** Why a line is no header; undefined when it is one. */
const wrongLine = (line: string): string | undefined => {
  const colon = line.indexOf(':')
  if (colon < 0) return 'Name: value'
  const name = line.slice(0, colon).trim()
  try {
    validateHeaderName(name)
    validateHeaderValue(name, line.slice(colon + 1).trim())
  } catch {
    return 'a name and a value that HTTP allows'
  }
  return CLOSED.has(name.toLowerCase()) ? 'a header that the sandbox does not set itself' : undefined
}

const linesOf = (text: string): [line: string, number: number][] =>
  text
    .split(/\r?\n/)
    .map((line, at): [string, number] => [line.trim(), at + 1])
    .filter(([line]) => line !== '' && !line.startsWith('#'))

const headerOf = (line: string): HeaderLine => ({
  name: line.slice(0, line.indexOf(':')).trim(),
  value: line.slice(line.indexOf(':') + 1).trim(),
})

/** Refuses text with a line that is no header; its value is not repeated. */
export const checkHeaderLines = (text: string): void => {
  for (const [line, number] of linesOf(text)) {
    const expected = wrongLine(line)
    if (expected === undefined) continue
    refuse('invalid', `headers: line ${number}: expected ${expected}`, {
      errors: [{ path: `headers.${number}`, expected }],
    })
  }
}

/** Whether a key can be sent: no line break and no character that HTTP allows in no header. */
export const isSendable = (key: string): boolean => {
  try {
    validateHeaderValue('authorization', key)
    return key.trim() === key
  } catch {
    return false
  }
}

/** Refuses a key that cannot be sent; it is not repeated. */
export const checkKey = (key: string): void => {
  if (isSendable(key)) return
  const expected = 'one line without blanks around it and without control characters'
  refuse('invalid', `apiKey: expected ${expected}, found another: copy it again without a line break`, {
    errors: [{ path: 'apiKey', expected }],
  })
}

/** The headers of a text, without lines that are none. */
export const headerLines = (text: string): HeaderLine[] =>
  linesOf(text).flatMap(([line]) => (wrongLine(line) === undefined ? [headerOf(line)] : []))
