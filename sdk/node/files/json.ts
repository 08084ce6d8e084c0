import { refuse } from '../../refusal.js'

const DEPTH = 64
/** Keys that would reach what every object inherits. */
export const CLOSED_KEYS = new Set(['__proto__', 'constructor', 'prototype'])

/** What every text with a closed key contains, the last one if it is written with escapes. */
const SUSPECT = [...CLOSED_KEYS, '\\u']

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The object that a stranger's bytes hold as JSON; refuses what is not UTF-8, nested deeper than 64 levels, or names a
 * key of every object.
 */
export const parseObject = (bytes: Buffer): object => {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return refuse('invalid', 'the body is not UTF-8')
  }
  if (isTooDeep(text)) refuse('invalid', `the body is nested deeper than ${DEPTH} levels`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return refuse(
      'invalid',
      `the body is not JSON: ${(error as Error).message.replace(/[\0-\x1f\x7f]+/g, ' ').slice(0, 120)}`,
    )
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse(
      'invalid',
      'expected a JSON object as body, '
        + `found ${Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`}`,
    )
  }
  if (SUSPECT.some(part => text.includes(part))) refuseClosedKeys(value)
  return value
}

/** Whether JSON is nested deeper than 64 levels. */
export const isTooDeep = (text: string): boolean => {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfText(text, at)
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > DEPTH) return true
    } else if (code === 0x7d || code === 0x5d) depth--
  }
  return false
}

/** Where the text that a quote begins is closed; a long one is passed over at once. */
const endOfText = (text: string, begin: number): number => {
  for (let at = begin; ;) {
    at = text.indexOf('"', at + 1)
    if (at < 0) return text.length
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return at
  }
}

const refuseClosedKeys = (value: unknown): void => {
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    if (CLOSED_KEYS.has(key)) refuse('invalid', `the key ${key} is not allowed in a body`)
    refuseClosedKeys(inner)
  }
}
