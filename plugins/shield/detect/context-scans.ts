import { SECRET_KEYS } from '../../../sdk/node/access/key-forms.js'
import type { FormScan } from './candidate.js'

/** Words beside which a number is a passport's, or a date somebody's day of birth, by language. */
const WORDS: { readonly [language: string]: { readonly passport: string; readonly birth: string } } = {
  da: { passport: 'pas(?:nummer)?', birth: 'f(?:ø|o)dt|f(?:ø|o)dselsdato' },
  de: { passport: '(?:reise)?pass(?:nummer|nr\\.?)?|personalausweis', birth: 'geb(?:oren|urtsdatum|urtstag|\\.)' },
  en: { passport: 'passport', birth: 'born|birth ?day|birth ?date|date of birth|d\\.?o\\.?b\\.?' },
  es: { passport: 'pasaporte', birth: 'nacid[oa]|(?:fecha de )?nacimiento' },
  fi: { passport: 'passi(?:n numero)?', birth: 'syntynyt|syntym(?:ä|a)aika' },
  fr: { passport: 'passeport', birth: 'n(?:é|e)(?:e)? le|(?:date de )?naissance' },
  it: { passport: 'passaporto', birth: 'nat[oa]|(?:data di )?nascita' },
  nl: { passport: 'paspoort(?:nummer)?', birth: 'geboren|geboortedatum' },
  pl: { passport: 'paszport(?:u)?', birth: 'urodzon[ya]|data urodzenia|ur\\.' },
  pt: { passport: 'passaporte', birth: 'nascid[oa]|(?:data de )?nascimento' },
  ro: { passport: 'pa(?:ș|s)aport', birth: 'n(?:ă|a)scut(?:ă|a)?|data na(?:ș|s)terii' },
  sv: { passport: 'pass(?:nummer)?', birth: 'f(?:ö|o)dd|f(?:ö|o)delsedatum' },
}

/** The languages whose words are known. */
export const knownLanguages: readonly string[] = Object.keys(WORDS)

const MONTHS =
  'jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez|déc|fév|avr|juin|août|ene|abr|ago|dic|gen|mag|giu|'
  + 'lug|set|ott|maj|out|fev'
const MONTH = `(?:${MONTHS})[\\p{L}]{0,7}\\.?`
const DATE =
  `(?:\\d{4}[-/.]\\d{1,2}[-/.]\\d{1,2}|\\d{1,2}[-/.]\\s?\\d{1,2}[-/.]\\s?(?:\\d{4}|\\d{2})`
  + `|\\d{1,2}\\.?(?:st|nd|rd|th)?(?: de)? ${MONTH}(?: de)?,? \\d{4}|${MONTH} \\d{1,2}(?:st|nd|rd|th)?,? \\d{4})`
/** What may be between the word and the value. */
const BETWEEN = '["\'*_]{0,4}(?:[\\s:=#]|number|nummer|no\\.?|nr\\.?|is|am|on|the|le|il|el|op|den|dato|["\'*_(]){1,8}?'

const hasDigits = (value: string): boolean => value.replace(/\D/g, '').length >= 3

/** Numbers and dates that are personal data because of the word before them. */
export const wordScans = (languages: readonly string[]): FormScan[] => {
  const chosen = languages.length === 0 ? knownLanguages : languages
  const words = chosen.flatMap(language => WORDS[language] ?? [])
  if (words.length === 0) return []
  const any = (which: 'passport' | 'birth') => words.map(word => word[which]).join('|')
  const form = (which: 'passport' | 'birth', value: string) =>
    new RegExp(
      `(?<![\\p{L}\\p{N}])(?:${any(which)})(?![\\p{L}\\p{N}])${BETWEEN}(?<value>${value})(?![\\p{L}\\p{N}])`,
      'dgiu',
    )
  return [
    {
      ...{ detector: 'passport', kind: 'PASSPORT', confidence: 'context', fits: hasDigits },
      form: form('passport', '[A-Z0-9]{6,9}'),
      normalized: value => value.toUpperCase(),
    },
    { detector: 'birth-date', kind: 'BIRTH_DATE', confidence: 'context', form: form('birth', DATE) },
  ]
}

const LEAST_BITS = 3.5

/** The average information of a character, in bits. */
const entropyOf = (text: string): number => {
  const times = new Map<string, number>()
  for (const char of text) times.set(char, (times.get(char) ?? 0) + 1)
  return [...times.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0)
}

/** Keys with a mark of their issuer, each with a longest length: a text is searched in pieces. */
const KEYS = SECRET_KEYS.map(form => form.replaceAll(',}', ',250}'))
const NAMED_VALUE = new RegExp(
  '(?:token|secret|passw(?:or)?d|pwd|api[_-]?key|access[_-]?key|private[_-]?key)["\']?\\s{0,3}[:=]{1,2}\\s{0,3}["\']?'
    + '(?<value>[\\w.~+/=!@#$%^&*-]{12,200})',
  'dgi',
)

/** Keys and passwords by their form, and values that look random beside a name for one. */
export const secretScans: readonly FormScan[] = [
  {
    ...{ detector: 'secret-pattern', kind: 'SECRET', confidence: 'pattern' },
    form: /-----BEGIN ((?:[A-Z]{1,12} ){0,3}PRIVATE KEY)-----[\s\S]{1,20000}?-----END \1-----/g,
  },
  {
    ...{ detector: 'secret-pattern', kind: 'SECRET', confidence: 'pattern' },
    form: /(?<![\w-])eyJ[\w-]{10,4000}\.[\w-]{10,8000}\.[\w-]{5,2000}(?![\w-])/g,
  },
  {
    ...{ detector: 'secret-pattern', kind: 'SECRET', confidence: 'pattern' },
    form: new RegExp(`(?<![\\w-])(?:${KEYS.join('|')})(?![\\w-])`, 'g'),
  },
  {
    ...{ detector: 'secret-pattern', kind: 'SECRET', confidence: 'pattern' },
    form: /:\/\/(?<value>[^\s/?#"'@:<>]{1,100}:[^\s/?#"'@<>]{1,200})@/dg,
  },
  {
    ...{ detector: 'secret-entropy', kind: 'SECRET', confidence: 'context' },
    form: NAMED_VALUE,
    fits: value => entropyOf(value) >= LEAST_BITS,
  },
]
