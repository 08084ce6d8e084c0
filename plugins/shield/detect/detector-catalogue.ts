import type { DetectorAction, DetectorEntry, DetectorId, ShieldPolicy } from '../contract.js'

type Known = Omit<DetectorEntry, 'action'>

const KNOWN: readonly Known[] = [
  { id: 'email', label: 'E-mail addresses', confidence: 'pattern', examples: ['jane@example.org'] },
  { id: 'phone', label: 'Telephone numbers', confidence: 'pattern', examples: ['+49 30 901820'] },
  { id: 'iban', label: 'Bank accounts (IBAN)', confidence: 'checksum', examples: ['DE89 3704 0044 0532 0130 00'] },
  { id: 'card', label: 'Payment cards', confidence: 'checksum', examples: ['4111 1111 1111 1111'] },
  { id: 'ip', label: 'Public network addresses', confidence: 'pattern', examples: ['8.8.8.8', '2606:4700:4700::1111'] },
  { id: 'mac', label: 'Device addresses', confidence: 'pattern', examples: ['a4:83:e7:12:9c:4f'] },
  { id: 'national-id', label: 'National numbers of people', confidence: 'checksum', examples: ['756.9217.0769.85'] },
  { id: 'vat', label: 'VAT numbers', confidence: 'checksum', examples: ['ATU13585627'] },
  { id: 'bic', label: 'Banks (BIC)', confidence: 'context', examples: ['BIC: COBADEFFXXX'] },
  { id: 'passport', label: 'Passports', confidence: 'context', examples: ['passport C01X00T47'] },
  { id: 'birth-date', label: 'Days of birth', confidence: 'context', examples: ['born 12 May 1980'] },
  {
    ...{ id: 'crypto-address', label: 'Wallets', confidence: 'checksum' },
    examples: ['1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2'],
  },
  { id: 'geo', label: 'Coordinates', confidence: 'pattern', examples: ['52.52000, 13.40500'] },
  { id: 'secret-stored', label: 'Stored secrets', confidence: 'exact', examples: ['the value of any stored secret'] },
  { id: 'secret-pattern', label: 'Keys by their form', confidence: 'pattern', examples: ['ghp_…', 'eyJ….….…'] },
  { id: 'secret-entropy', label: 'What looks like a key', confidence: 'context', examples: ['password = "x8!kQ…"'] },
  { id: 'list', label: 'Your lists', confidence: 'exact', examples: ['names, clients and projects'] },
  { id: 'pattern', label: 'Your patterns', confidence: 'pattern', examples: ['a form that you describe'] },
]
const REPORTS: readonly DetectorId[] = ['secret-entropy', 'geo']

/** The ids of all detectors. */
export const detectorIds: readonly DetectorId[] = KNOWN.map(({ id }) => id)

/** What a policy does with what a detector finds. */
export const actionOf = ({ detectors }: Pick<ShieldPolicy, 'detectors'>, id: DetectorId): DetectorAction =>
  detectors[id] ?? (REPORTS.includes(id) ? 'report' : 'mask')

/** All detectors as a policy sets them. */
export const detectorEntries = (policy: ShieldPolicy): DetectorEntry[] =>
  KNOWN.map(({ examples, ...known }) => ({ ...known, examples: [...examples], action: actionOf(policy, known.id) }))
