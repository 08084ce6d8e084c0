import { withoutSeparators, type FormScan } from './candidate.js'
import { digitsOf, isLuhn, isMod1110, isMod97, remainderOf, weighted } from './check-digits.js'

/** How long an IBAN of a country is (ISO 13616 registry). */
const IBAN_LENGTHS: { readonly [country: string]: number } = Object.fromEntries(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 '
    + 'ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 '
    + 'LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 '
    + 'QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20'
  )
    .split(' ')
    .map(each => [each.slice(0, 2), Number(each.slice(2))]),
)

const isIban = (value: string): boolean => {
  const text = withoutSeparators(value)
  return IBAN_LENGTHS[text.slice(0, 2)] === text.length && isMod97(text.slice(4) + text.slice(0, 4))
}

/** The ranges of card issuers, by their first digits and the lengths of their numbers. */
const ISSUERS: readonly (readonly [first: RegExp, lengths: readonly number[]])[] = [
  [/^4/, [13, 16, 19]],
  [/^(?:5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720))/, [16]],
  [/^3[47]/, [15]],
  [/^3(?:0[0-5]|[689])/, [14, 16, 17, 18, 19]],
  [/^(?:6011|64[4-9]|65)/, [16, 17, 18, 19]],
  [/^35(?:2[89]|[3-8])/, [16, 17, 18, 19]],
  [/^62/, [16, 17, 18, 19]],
  [/^(?:50|5[6-9]|6[0-9])/, [13, 14, 15, 16, 17, 18, 19]],
]

const isCard = (value: string): boolean => {
  const number = withoutSeparators(value)
  return isLuhn(digitsOf(number)) && ISSUERS.some(([first, of]) => of.includes(number.length) && first.test(number))
}

const lessTen = (check: number): number => (check >= 10 ? 0 : check)

/** Whether the digits after the country's letters are right. */
const VAT: { readonly [country: string]: (rest: string) => boolean } = {
  AT: rest => {
    const digits = digitsOf(rest)
    const sum = digits.slice(0, 7).reduce((total, digit, at) => {
      const doubled = at % 2 === 1 ? digit * 2 : digit
      return total + (doubled > 9 ? doubled - 9 : doubled)
    }, 4)
    return /^U\d{8}$/.test(rest) && (10 - (sum % 10)) % 10 === digits[7]
  },
  BE: rest => /^[01]\d{9}$/.test(rest) && 97 - (Number(rest.slice(0, 8)) % 97) === Number(rest.slice(8)),
  CHE: rest => {
    const digits = digitsOf(rest)
    return /^\d{9}$/.test(rest) && (11 - (weighted(digits, [5, 4, 3, 2, 7, 6, 5, 4]) % 11)) % 11 === digits[8]
  },
  DE: rest => /^[1-9]\d{8}$/.test(rest) && isMod1110(digitsOf(rest)),
  DK: rest => /^[1-9]\d{7}$/.test(rest) && weighted(digitsOf(rest), [2, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0,
  FI: rest => {
    const digits = digitsOf(rest)
    return /^\d{8}$/.test(rest) && (11 - (weighted(digits, [7, 9, 10, 5, 8, 4, 2]) % 11)) % 11 === digits[7]
  },
  FR: rest => /^\d{11}$/.test(rest) && (12 + 3 * remainderOf(rest.slice(2), 97)) % 97 === Number(rest.slice(0, 2)),
  GB: rest => {
    const sum = weighted(digitsOf(rest), [8, 7, 6, 5, 4, 3, 2]) + Number(rest.slice(7))
    return /^\d{9}$/.test(rest) && (sum % 97 === 0 || (sum + 55) % 97 === 0)
  },
  IT: rest => /^\d{11}$/.test(rest) && isLuhn(digitsOf(rest)),
  LU: rest => /^\d{8}$/.test(rest) && Number(rest.slice(0, 6)) % 89 === Number(rest.slice(6)),
  NL: rest =>
    /^\d{9}B\d{2}$/.test(rest)
    && (isMod97(`NL${rest}`) || weighted(digitsOf(rest), [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0),
  PL: rest => {
    const digits = digitsOf(rest)
    return /^\d{10}$/.test(rest) && weighted(digits, [6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 === digits[9]
  },
  PT: rest => {
    const digits = digitsOf(rest)
    return /^\d{9}$/.test(rest) && lessTen(11 - (weighted(digits, [9, 8, 7, 6, 5, 4, 3, 2]) % 11)) === digits[8]
  },
  SE: rest => /^\d{10}01$/.test(rest) && isLuhn(digitsOf(rest.slice(0, 10))),
}

const isVat = (value: string): boolean => {
  const text = withoutSeparators(value)
  const country = text.startsWith('CHE') ? 'CHE' : text.slice(0, 2)
  return VAT[country]?.(text.slice(country.length)) ?? false
}

/** Codes of countries in the numbering plan (ITU-T E.164) that have one or two digits; the others have three. */
const SHORT_CODES = new Set(
  (
    '1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 '
    + '86 90 91 92 93 94 95 98'
  ).split(' '),
)
const LONG_CODE = /^(?:2[1-69]|3[578]|42|5[09]|67|68|69|8[058]|9[67])\d|^99[2-8]/

const isE164 = (value: string): boolean => {
  const digits = value
    .replace(/^\+|^00/, '')
    .replace(/\(0\)/, '')
    .replace(/\D/g, '')
  const known = SHORT_CODES.has(digits[0]!) || SHORT_CODES.has(digits.slice(0, 2)) || LONG_CODE.test(digits)
  return known && digits.length >= 8 && digits.length <= 15
}

/** How numbers are written inside a country: their first digits, and how many there are. */
const INSIDE: { readonly [country: string]: readonly [first: RegExp, least: number, most: number] } = {
  AT: [/^0[1-9]/, 8, 13],
  AU: [/^0[23478]/, 10, 10],
  BE: [/^0[1-9]/, 9, 10],
  BR: [/^[1-9][1-9][2-9]/, 10, 11],
  CA: [/^[2-9]\d{2}[2-9]/, 10, 10],
  CH: [/^0[2-9]/, 10, 10],
  CZ: [/^[2-7]/, 9, 9],
  DE: [/^0[1-9]/, 10, 12],
  DK: [/^[2-9]/, 8, 8],
  ES: [/^[6789]/, 9, 9],
  FI: [/^0[1-9]/, 9, 11],
  FR: [/^0[1-9]/, 10, 10],
  GB: [/^0[1-37-9]/, 10, 11],
  IE: [/^0[1-9]/, 9, 10],
  IN: [/^0?[6-9]/, 10, 11],
  IT: [/^(?:0\d|3\d)/, 9, 11],
  NL: [/^0[1-9]/, 10, 10],
  NO: [/^[2-9]/, 8, 8],
  PL: [/^[1-9]/, 9, 9],
  PT: [/^[29]/, 9, 9],
  RO: [/^0[237]/, 10, 10],
  SE: [/^0[1-9]/, 8, 10],
  US: [/^[2-9]\d{2}[2-9]/, 10, 10],
}

/** Telephone numbers of some countries, as they are written there. */
export const nationalPhones = (countries: readonly string[]): FormScan[] => {
  const known = countries.flatMap(country => (INSIDE[country] ? [INSIDE[country]] : []))
  if (known.length === 0) return []
  const fits = (value: string): boolean => {
    const digits = value.replace(/\D/g, '')
    return known.some(([first, least, most]) => first.test(digits) && digits.length >= least && digits.length <= most)
  }
  const form = /(?<![\w+.,:/=-])(?:\(\d{2,5}\) ?|\d)(?:[ ./-]?\d){6,11}(?![\w]|[.,-]\d)/g
  return [{ detector: 'phone', kind: 'PHONE', confidence: 'pattern', form, fits, normalized: withoutSeparators }]
}

const NEAR = 60
const BIC_WORD = /\b(?:BIC|SWIFT|IBAN)\b|\b[A-Z]{2}\d{2} ?[A-Z0-9]{4} ?\d{4}/i

/** Numbers with a checksum or a fixed form, wherever they are. */
export const numberScans: readonly FormScan[] = [
  {
    ...{ detector: 'iban', kind: 'IBAN', confidence: 'checksum', fits: isIban, normalized: withoutSeparators },
    form: /(?<!\w)[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?!\w)/g,
  },
  {
    ...{ detector: 'card', kind: 'CARD', confidence: 'checksum', fits: isCard, normalized: withoutSeparators },
    form: /(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w]|[.-]\d)/g,
  },
  {
    ...{ detector: 'vat', kind: 'VAT', confidence: 'checksum', fits: isVat, normalized: withoutSeparators },
    form: /(?<!\w)(?:CHE[- ]?|[A-Z]{2} ?)(?:U|\d)(?:[ .-]?[0-9B]){7,12}(?!\w)/g,
  },
  {
    ...{ detector: 'phone', kind: 'PHONE', confidence: 'pattern', fits: isE164, normalized: withoutSeparators },
    form: /(?<![\w.+-])(?<!\d )(?:\+|00(?=[1-9]))[1-9](?:[ ./-]?(?:\(\d{1,4}\)|\d)){6,15}(?![\w]|[.-]\d)/g,
  },
  {
    ...{ detector: 'bic', kind: 'BIC', confidence: 'context' },
    form: /(?<!\w)[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?(?!\w)/g,
    fits: (value, text, start) =>
      BIC_WORD.test(text.slice(Math.max(0, start - NEAR), start))
      || BIC_WORD.test(text.slice(start + value.length, start + value.length + NEAR)),
  },
]
