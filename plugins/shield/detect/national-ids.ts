import type { NationalId, NationalIdEntry } from '../contract.js'
import { withoutSeparators, type FormScan } from './candidate.js'
import { digitsOf, isDate, isLuhn, isMod1110, isVerhoeff, remainderOf, weighted } from './check-digits.js'

interface NationalForm extends NationalIdEntry {
  /** Without anchors: no letter or digit may be beside it. */
  readonly form: string
  readonly checked: boolean
  readonly fits: (value: string) => boolean
}

const LETTERS_ES = 'TRWAGMYFPDXBNJZSQVHLCKE'
const LETTERS_FI = '0123456789ABCDEFHJKLMNPRSTUVWXY'
const LETTERS_IE = 'WABCDEFGHIJKLMNOPQRSTUV'
/** What characters at odd places count in an Italian code; letters and digits alike. */
const ODD_IT = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]
const NO_PREFIX_GB = new Set(['BG', 'GB', 'KN', 'NK', 'NT', 'TN', 'ZZ'])

const pair = (digits: readonly number[], at: number): number => digits[at]! * 10 + digits[at + 1]!
const isSame = (digits: readonly number[]): boolean => digits.every(digit => digit === digits[0])

const at = (value: string): boolean => {
  const digits = digitsOf(value)
  const check = weighted(digits, [3, 7, 9, 0, 5, 8, 4, 2, 1, 6]) % 11
  const [day, month] = [pair(digits, 4), pair(digits, 6)]
  return digits[0] !== 0 && check === digits[3] && day >= 1 && day <= 31 && month >= 1 && month <= 15
}
const be = (value: string): boolean => {
  const digits = withoutSeparators(value)
  const check = Number(digits.slice(9))
  const valid = [digits.slice(0, 9), `2${digits.slice(0, 9)}`].some(number => 97 - remainderOf(number, 97) === check)
  return valid && Number(digits.slice(2, 4)) <= 12 && Number(digits.slice(4, 6)) <= 31
}
const br = (value: string): boolean => {
  const digits = digitsOf(value)
  const check = (length: number): number => {
    const weights = Array.from({ length }, (_, index) => length + 1 - index)
    return ((weighted(digits, weights) * 10) % 11) % 10
  }
  return !isSame(digits) && check(9) === digits[9] && check(10) === digits[10]
}
const ch = (value: string): boolean => weighted(digitsOf(value), [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]) % 10 === 0
const de = (value: string): boolean => {
  const digits = digitsOf(value)
  const times = Array.from({ length: 10 }, (_, digit) => digits.slice(0, 10).filter(each => each === digit).length)
  const repeated = times.filter(count => count > 1)
  return digits[0] !== 0 && repeated.length === 1 && repeated[0]! <= 3 && isMod1110(digits)
}
const dk = (value: string): boolean => {
  const digits = digitsOf(value)
  return isDate(pair(digits, 2), pair(digits, 0)) && weighted(digits, [4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0
}
const es = (value: string): boolean => {
  const text = withoutSeparators(value)
  const number = text.slice(0, -1).replace(/^[XYZ]/, first => String('XYZ'.indexOf(first)))
  return LETTERS_ES[Number(number) % 23] === text.at(-1)
}
const fi = (value: string): boolean => {
  const number = value.slice(0, 6) + value.slice(7, 10)
  const digits = digitsOf(number)
  return isDate(pair(digits, 2), pair(digits, 0)) && LETTERS_FI[Number(number) % 31] === value.at(-1)
}
const fr = (value: string): boolean => {
  const text = withoutSeparators(value)
  const number = text.slice(0, 13).replace('2A', '19').replace('2B', '18')
  return /^\d{13}$/.test(number) && 97 - remainderOf(number, 97) === Number(text.slice(13))
}
const nhs = (value: string): boolean => {
  const digits = digitsOf(value)
  const check = (11 - (weighted(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)) % 11
  return !isSame(digits) && check === digits[9]
}
const ie = (value: string): boolean => {
  const text = withoutSeparators(value)
  const second = text[8] === undefined ? 0 : LETTERS_IE.indexOf(text[8])
  return LETTERS_IE[(weighted(digitsOf(text), [8, 7, 6, 5, 4, 3, 2]) + second * 9) % 23] === text[7]
}
const it = (value: string): boolean => {
  const sum = [...value.slice(0, 15)].reduce((total, char, index) => {
    const code = /\d/.test(char) ? Number(char) : char.charCodeAt(0) - 65
    return total + (index % 2 === 0 ? ODD_IT[code]! : code)
  }, 0)
  return String.fromCharCode(65 + (sum % 26)) === value[15]
}
const nl = (value: string): boolean => {
  const digits = digitsOf(value)
  return !isSame(digits) && weighted(digits, [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0
}
const pl = (value: string): boolean => {
  const digits = digitsOf(value)
  const dated = isDate(pair(digits, 2) % 20, pair(digits, 4))
  return dated && weighted(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0
}
const pt = (value: string): boolean => {
  const digits = digitsOf(value)
  const check = 11 - (weighted(digits, [9, 8, 7, 6, 5, 4, 3, 2]) % 11)
  return !isSame(digits) && (check > 9 ? 0 : check) === digits[8]
}
const ro = (value: string): boolean => {
  const digits = digitsOf(value)
  const check = weighted(digits, [2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11
  return isDate(pair(digits, 3), pair(digits, 5)) && (check === 10 ? 1 : check) === digits[12]
}
const se = (value: string): boolean => {
  const digits = digitsOf(value).slice(-10)
  return isDate(pair(digits, 2), pair(digits, 4) % 60) && isLuhn(digits)
}
const nino = (value: string): boolean => !NO_PREFIX_GB.has(value.slice(0, 2))
const ssn = (value: string): boolean => !/^(?:000|666|9)|^...[- ]00|0000$/.test(value)

const NATIONAL: readonly NationalForm[] = [
  {
    id: 'at-svnr',
    country: 'AT',
    label: 'Social insurance number',
    form: '\\d{4}[ -]?\\d{6}',
    checked: true,
    fits: at,
  },
  {
    id: 'be-rrn',
    country: 'BE',
    label: 'National register number',
    form: '\\d{2}\\.?\\d{2}\\.?\\d{2}[ -]?\\d{3}[.-]?\\d{2}',
    checked: true,
    fits: be,
  },
  { id: 'br-cpf', country: 'BR', label: 'CPF', form: '\\d{3}\\.?\\d{3}\\.?\\d{3}-?\\d{2}', checked: true, fits: br },
  {
    id: 'ch-ahv',
    country: 'CH',
    label: 'AHV number',
    form: '756\\.?\\d{4}\\.?\\d{4}\\.?\\d{2}',
    checked: true,
    fits: ch,
  },
  {
    id: 'de-steuerid',
    country: 'DE',
    label: 'Tax number',
    form: '\\d{2} ?\\d{3} ?\\d{3} ?\\d{3}',
    checked: true,
    fits: de,
  },
  { id: 'dk-cpr', country: 'DK', label: 'CPR number', form: '\\d{6}-?\\d{4}', checked: true, fits: dk },
  {
    id: 'es-dni',
    country: 'ES',
    label: 'DNI or NIE',
    form: '(?:\\d{8}|[XYZ]-?\\d{7})-?[A-HJ-NP-TV-Z]',
    checked: true,
    fits: es,
  },
  {
    id: 'fi-hetu',
    country: 'FI',
    label: 'Personal identity code',
    form: '\\d{6}[-+A-FU-Y]\\d{3}[0-9A-FHJ-NPR-Y]',
    checked: true,
    fits: fi,
  },
  {
    id: 'fr-nir',
    country: 'FR',
    label: 'Social security number',
    form: '[1-478] ?\\d{2} ?\\d{2} ?(?:\\d{2}|2[AB]) ?\\d{3} ?\\d{3} ?\\d{2}',
    checked: true,
    fits: fr,
  },
  { id: 'gb-nhs', country: 'GB', label: 'NHS number', form: '\\d{3}[ -]?\\d{3}[ -]?\\d{4}', checked: true, fits: nhs },
  {
    id: 'gb-nino',
    country: 'GB',
    label: 'National insurance number',
    form: '[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\\d{2} ?\\d{2} ?\\d{2} ?[A-D]',
    checked: false,
    fits: nino,
  },
  { id: 'ie-pps', country: 'IE', label: 'PPS number', form: '\\d{7}[A-W][A-IW]?', checked: true, fits: ie },
  {
    id: 'in-aadhaar',
    country: 'IN',
    label: 'Aadhaar',
    form: '[2-9]\\d{3}[ -]?\\d{4}[ -]?\\d{4}',
    checked: true,
    fits: value => isVerhoeff(digitsOf(value)),
  },
  {
    id: 'it-cf',
    country: 'IT',
    label: 'Codice fiscale',
    form: '[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]',
    checked: true,
    fits: it,
  },
  { id: 'nl-bsn', country: 'NL', label: 'BSN', form: '\\d{4}[ .]?\\d{2}[ .]?\\d{3}', checked: true, fits: nl },
  { id: 'pl-pesel', country: 'PL', label: 'PESEL', form: '\\d{11}', checked: true, fits: pl },
  { id: 'pt-nif', country: 'PT', label: 'NIF', form: '[1-35689]\\d{2} ?\\d{3} ?\\d{3}', checked: true, fits: pt },
  { id: 'ro-cnp', country: 'RO', label: 'CNP', form: '[1-8]\\d{12}', checked: true, fits: ro },
  {
    id: 'se-pnr',
    country: 'SE',
    label: 'Personal identity number',
    form: '(?:19|20)?\\d{6}[-+]?\\d{4}',
    checked: true,
    fits: se,
  },
  {
    id: 'us-itin',
    country: 'US',
    label: 'ITIN',
    form: '9\\d{2}[- ](?:5\\d|6[0-5]|7\\d|8[0-8]|9[0-24-9])[- ]\\d{4}',
    checked: false,
    fits: () => true,
  },
  {
    id: 'us-ssn',
    country: 'US',
    label: 'Social security number',
    form: '\\d{3}[- ]\\d{2}[- ]\\d{4}',
    checked: false,
    fits: ssn,
  },
]

/** The catalogue of national numbers. */
export const nationalIds: readonly NationalIdEntry[] = NATIONAL.map(({ id, country, label }) => ({
  id,
  country,
  label,
}))

/** The scans for national numbers of some countries; none: of all that have a checksum. */
export const nationalScans = (countries: readonly string[]): FormScan[] =>
  NATIONAL.filter(({ country, checked }) => (countries.length === 0 ? checked : countries.includes(country))).map(
    ({ id, form, checked, fits }): FormScan => ({
      detector: 'national-id',
      kind: 'ID',
      confidence: checked ? 'checksum' : 'pattern',
      source: id satisfies NationalId,
      form: new RegExp(`(?<![\\w.-])${form}(?![\\w]|[.-]\\d)`, 'g'),
      fits,
      normalized: withoutSeparators,
    }),
  )
