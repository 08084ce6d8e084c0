import { MARKED_KEYS, PRIVATE_KEY, withoutUnmarked } from './key-forms.js'
import { escapedUnits, SELECTORS, unseenBut } from '../../unseen.js'

/** The text that replaces a secret. */
export const REDACTED = '[redacted]'

const NAMES = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'x-sandbox-control',
  'x-sandbox-turn',
  'x-sandbox-extension',
  'x-sandbox-run',
  'ticket',
  'token',
  'visitor',
  'sentry_key',
  'secret',
  'password',
  'passphrase',
  'api_key',
  'api-key',
  'apikey',
  'access_token',
  'refresh_token',
  'id_token',
  'client_secret',
  'private_key',
  'privatekey',
]
const QUERY =
  'ticket|token|visitor|state|code|sentry_key|key|api_?key|access_token|refresh_token|id_token|client_secret|secret|'
  + 'password|sig|signature'
/** The separator between a header's name and its value, in text or in JSON. */
const BECOMES = String.raw`(?:\\?")?\s*[:=]\s*(?:\\?")?`

const SCHEME = String.raw`(?:(?:bearer|basic|digest|negotiate|token)\s+)?`
/** Stands for a stored value, and is none. */
const REFERENCE = String.raw`\{\{secret:[\w./-]+\}\}(?:[\s"',;\\]|$)`

/** Patterns of credentials; replacements keep the part that identifies the kind of credential. */
const FORMS: readonly (readonly [form: RegExp, instead: string])[] = [
  [/\bsb([a-z])_[\w-]{8,}(?:\.[\w-]*)?/g, `sb$1_${REDACTED}`],
  [/\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?/g, REDACTED],
  [new RegExp(`\\b(?:${MARKED_KEYS.join('|')})`, 'g'), REDACTED],
  [new RegExp(String.raw`-----BEGIN (${PRIVATE_KEY})-----[\s\S]*?(?:-----END \1-----|$)`, 'g'), REDACTED],
  [
    new RegExp(
      String.raw`\b((?:proxy-)?authorization)(${BECOMES})(?!\s*${SCHEME}${REFERENCE})${SCHEME}[^\s"',;\\]+`,
      'gi',
    ),
    `$1$2${REDACTED}`,
  ],
  [
    new RegExp(
      String.raw`\b((?:set-)?cookie|x-sandbox-(?:control|turn|extension|run)|x-api-key)(${BECOMES})[^"\r\n\\]+`,
      'gi',
    ),
    `$1$2${REDACTED}`,
  ],
  [/\b(bearer)\s+[\w.~+/=-]{8,}/gi, `$1 ${REDACTED}`],
  [new RegExp(`([?&;#]|%3f|%26)(${QUERY})(=|%3d)[^&#\\s"'\\\\]*`, 'gi'), `$1$2$3${REDACTED}`],
  [/:\/\/[^\s/?#"'@]+@/g, `://${REDACTED}@`],
]
const FIELD = new RegExp(`("(?:${NAMES.join('|')})"\\s*:\\s*)"(?:[^"\\\\]|\\\\.)*"?`, 'gi')

/** Replaces all known forms of credentials in a text. */
export const redacted = (text: string): string =>
  withoutUnmarked(
    FORMS.reduce((done, [form, instead]) => done.replace(form, instead), text),
    REDACTED,
  )

/** Replaces credentials in a line of JSON, by their form and by the names of fields. */
export const redactedJson = (line: string): string => redacted(line.replace(FIELD, `$1"${REDACTED}"`))

const KEY_LINE = new RegExp(`-----(BEGIN|END) ${PRIVATE_KEY}-----`, 'g')
const OF_KEY = /^\s*(?:[\w+/=]*|[A-Z][\w-]*: [\w ,-]*)\s*$/
const LONGEST_KEY = 400

/** Replaces credentials in batches of lines; recognizes a private key also across batches. */
export const redactedPieces = (): ((lines: readonly string[]) => string[]) => {
  /** The number of lines that may still belong to the current key. */
  let left = 0
  return lines => {
    let from = 0
    while (from < lines.length && left > 0) {
      const ends = lines[from]!.match(KEY_LINE)?.[0].includes('END')
      if (!ends && !OF_KEY.test(lines[from]!)) left = 0
      else {
        left = ends ? 0 : left - 1
        from += 1
      }
    }
    const text = lines.slice(from).join('\n')
    if (text.match(KEY_LINE)?.at(-1)?.includes('BEGIN')) left = LONGEST_KEY
    return from < lines.length ? redacted(text).split('\n') : []
  }
}

const SECRET = new Set(NAMES)

/** Whether a field with this name contains a secret. */
export const namesSecret = (name: string): boolean => SECRET.has(name.toLowerCase())

const BREAKS = /[\t\n\v\f\r\u0085\u2028\u2029]+/g
/** Keeps joiners, which many languages need for their letters. */
const UNSEEN = new RegExp(String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{DI}](?<![\u200c\u200d${SELECTORS}])`, 'gu')

/**
 * Text from outside as one field: one line of at most `most` characters, without control and direction characters or
 * credentials.
 */
export const asData = (text: string, most: number): string => {
  const clean = redacted(
    text
      .slice(0, 8 * most)
      .toWellFormed()
      .replace(BREAKS, ' ')
      .replace(UNSEEN, ''),
  )
  return clean.length > most ? `${clean.slice(0, most - 1).toWellFormed()}…` : clean
}

const STEERS = unseenBut(String.raw`\n\u200c\u200d` + SELECTORS)

/** Escapes characters that could control a terminal or reorder a line as `\uXXXX`; JSON keeps its value. */
export const visible = (text: string): string => text.replace(STEERS, escapedUnits)
