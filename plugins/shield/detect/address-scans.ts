import { isIPv6 } from 'node:net'
import { addressKind } from '../../../sdk/node/network/addresses.js'
import type { FormScan } from './candidate.js'
import { isBase58Check, isBech32 } from './check-digits.js'
import { keccak256 } from './keccak.js'

const isPublic = (value: string): boolean => {
  if (value.split('.').some(part => Number(part) > 255)) return false
  return addressKind(value) === 'public'
}

const isPublic6 = (value: string): boolean => isIPv6(value) && addressKind(value) === 'public'

const isDevice = (value: string): boolean => !/^(?:(?:00[:-]){5}00|(?:ff[:-]){5}ff)$/i.test(value)

/** Whether the letters of an Ethereum address are large and small as its hash says (EIP-55). */
const isMixed = (value: string): boolean => {
  const digits = value.slice(2)
  if (!/[a-f]/.test(digits) || !/[A-F]/.test(digits)) return false
  const hash = keccak256(digits.toLowerCase())
  return [...digits].every(
    (digit, at) => /\d/.test(digit) || Number.parseInt(hash[at]!, 16) >= 8 === (digit === digit.toUpperCase()),
  )
}

const isOnEarth = (value: string): boolean => {
  const [latitude = NaN, longitude = NaN] = value.split(/[,;]\s*|\s+/).map(Number)
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180
}

/** What a mail address may begin with, as it is used; quoted local parts are not. */
const LOCAL = "\\p{L}\\p{N}_!#$&'*+=?^{|}~-"
const DOMAIN = '(?:[\\p{L}\\p{N}](?:[\\p{L}\\p{N}-]{0,61}[\\p{L}\\p{N}])?\\.){1,8}\\p{L}{2,24}'
/** The length of a local part (RFC 5321, section 4.5.3.1.1) bounds the search. */
const MAIL = new RegExp(
  `(?<![\\w.!#$%&'*+/=?^\`{|}~@-])[${LOCAL}](?:[.%${LOCAL}]{0,62}[\\p{L}\\p{N}_+-])?@${DOMAIN}(?![\\p{L}\\p{N}_])`,
  'gu',
)

const lower = (value: string): string => value.toLowerCase()

/** Addresses of people, machines, places and wallets. */
export const addressScans: readonly FormScan[] = [
  {
    ...{ detector: 'email', kind: 'EMAIL', confidence: 'pattern', normalized: lower },
    form: MAIL,
  },
  {
    ...{ detector: 'ip', kind: 'IP', confidence: 'pattern', fits: isPublic },
    form: /(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\w)/g,
  },
  {
    ...{ detector: 'ip', kind: 'IP', confidence: 'pattern', fits: isPublic6, normalized: lower },
    form: /(?<![\w:.])(?:[0-9a-f]{1,4}:|:){2,7}(?:[0-9a-f]{1,4})?(?![\w:])/gi,
  },
  {
    ...{ detector: 'mac', kind: 'MAC', confidence: 'pattern', fits: isDevice },
    form: /(?<![\w:-])[0-9a-f]{2}(?:(?::[0-9a-f]{2}){5}|(?:-[0-9a-f]{2}){5})(?![\w:-])/gi,
    normalized: value => lower(value).replaceAll('-', ':'),
  },
  {
    ...{ detector: 'crypto-address', kind: 'WALLET', confidence: 'checksum', fits: isBase58Check },
    form: /(?<!\w)[13LDM][1-9A-HJ-NP-Za-km-z]{25,34}(?!\w)/g,
  },
  {
    ...{ detector: 'crypto-address', kind: 'WALLET', confidence: 'checksum', fits: isBech32, normalized: lower },
    form: /(?<!\w)(?:(?:bc|tb|ltc)1[ac-hj-np-z02-9]{11,71}|(?:BC|TB|LTC)1[AC-HJ-NP-Z02-9]{11,71})(?!\w)/g,
  },
  {
    ...{ detector: 'crypto-address', kind: 'WALLET', confidence: 'checksum', fits: isMixed },
    form: /(?<!\w)0x[0-9a-fA-F]{40}(?!\w)/g,
  },
  {
    ...{ detector: 'geo', kind: 'GEO', confidence: 'pattern', fits: isOnEarth },
    form: /(?<![\w.-])[+-]?\d{1,2}\.\d{4,12}(?:[,;]\s{0,2}| )[+-]?\d{1,3}\.\d{4,12}(?![\w.])/g,
  },
]
