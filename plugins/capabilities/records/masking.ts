import { REDACTED, redacted } from '../../../sdk/node/access/redact.js'

const SHORTEST = 4
const MOST = 600

/** The values in the secret fields of a connection: whole, and of fields with lines the value of each line. */
const valuesOf = (secrets: { readonly [field: string]: string }): string[] =>
  Object.values(secrets)
    .flatMap(value => [
      value,
      ...value.split('\n').flatMap(line => [line, line.replace(/^[^=:]*[=:]/, '')].map(text => text.trim())),
    ])
    .filter(value => value.length >= SHORTEST)
    .sort((one, other) => other.length - one.length)

/** What a program or server said, as part of a sentence for people: without secrets, one line, and not long. */
export const masked = (text: string, secrets: { readonly [field: string]: string } = {}): string => {
  const without = valuesOf(secrets).reduce((left, value) => left.replaceAll(value, REDACTED), text.toWellFormed())
  const line = redacted(without)
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
  return line.length > MOST ? `${line.slice(0, MOST - 1).toWellFormed()}…` : line
}
