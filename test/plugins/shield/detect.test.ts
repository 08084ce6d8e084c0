import t from 'tap'
import type { NationalId } from '../../../plugins/shield/contract.js'
import { keccak256 } from '../../../plugins/shield/detect/keccak.js'
import { nationalIds } from '../../../plugins/shield/detect/national-ids.js'
import { exactly } from '../../support/lists.js'
import { foundIn, placesUnder } from './support.js'

const NATIONAL: { readonly [id in NationalId]: readonly [valid: string, invalid: string] } = {
  'at-svnr': ['1237 010180', '1238 010180'],
  'be-rrn': ['85.07.30-033.28', '85.07.30-033.29'],
  'br-cpf': ['529.982.247-25', '529.982.247-26'],
  'ch-ahv': ['756.9217.0769.85', '756.9217.0769.84'],
  'de-steuerid': ['36 574 261 809', '36 574 261 808'],
  'dk-cpr': ['211062-5629', '211062-5628'],
  'es-dni': ['54362315K', '54362315L'],
  'fi-hetu': ['131052-308T', '131052-308U'],
  'fr-nir': ['2 95 10 99 126 111 93', '2 95 10 99 126 111 94'],
  'gb-nhs': ['943-476-5870', '943-476-5871'],
  'gb-nino': ['AB 12 34 56 C', 'BG 12 34 56 C'],
  'ie-pps': ['6433435F', '6433435E'],
  'in-aadhaar': ['2341 2341 2346', '2341 2341 2347'],
  'it-cf': ['RCCMNL83S18D969H', 'RCCMNL83S18D969B'],
  'nl-bsn': ['111222333', '111222334'],
  'pl-pesel': ['44051401359', '44051401358'],
  'pt-nif': ['501964843', '501964842'],
  'ro-cnp': ['1630615123457', '1630615123458'],
  'se-pnr': ['880320-0016', '880320-0018'],
  'us-itin': ['912-90-3456', '912-93-3456'],
  'us-ssn': ['536-90-4399', '666-90-4399'],
}

t.test('each national number is found by its checksum or form, and a wrong one is not', async t => {
  for (const { id, country } of nationalIds) {
    const [valid, invalid] = NATIONAL[id]
    const sources = (text: string) =>
      placesUnder(`Number: ${text}, thanks`, { countries: [country] }).map(({ source }) => source)
    t.ok(sources(valid).includes(id), `${id} ${valid}`)
    t.notOk(sources(invalid).includes(id), `${id} ${invalid}`)
  }
  t.match(foundIn('SSN 536-90-4399'), exactly(), 'a form without a checksum needs its country')
  t.match(foundIn('X2482300W', { countries: ['ES'] }), exactly('national-id:X2482300W'), 'a foreigner in Spain')
})

t.test('accounts and cards are found by their checksum, in any spelling', async t => {
  for (const good of ['DE89 3704 0044 0532 0130 00', 'GB82WEST12345698765432', 'NL91ABNA0417164300'])
    t.match(foundIn(`IBAN ${good}.`), exactly(`iban:${good}`), good)
  t.match(foundIn('DE88 3704 0044 0532 0130 00', { countries: ['CH'] }), exactly(), 'a wrong check digit')
  t.match(foundIn('NO89 3704 0044 0532 0130 00', { countries: ['CH'] }), exactly(), 'a wrong length')
  for (const good of ['4111 1111 1111 1111', '5555-5555-5555-4444', '378282246310005'])
    t.match(foundIn(`card ${good}`), exactly(`card:${good}`), good)
  t.match(foundIn('card 4111 1111 1111 1112'), exactly(), 'a wrong last digit')
  t.match(foundIn('card 9999 9999 9999 9995', { countries: ['CH'] }), exactly(), 'no issuer')
})

t.test('VAT numbers are found by the checksum of their country', async t => {
  const good = [
    ...['ATU13585627', 'BE0403019261', 'CHE-100.155.212', 'DE136695976', 'DK13585628', 'FI20774740', 'FR40303265045'],
    ...[
      'GB980780684',
      'IT00743110157',
      'LU15027442',
      'NL004495445B01',
      'PL8567346215',
      'PT501964843',
      'SE123456789701',
    ],
  ]
  for (const number of good) t.match(foundIn(`VAT ${number}`), exactly(`vat:${number}`), number)
  for (const number of ['ATU13585628', 'DE136695978', 'FR84323140391', 'XX136695976', 'LU15027443'])
    t.match(foundIn(`VAT ${number}`, { countries: ['CH'] }), exactly(), number)
})

t.test('addresses of people, machines, places and wallets are found', async t => {
  t.match(foundIn('<Jane.Doe+a@mail.Example.org>, x@localhost'), exactly('email:Jane.Doe+a@mail.Example.org'))
  t.match(foundIn('8.8.8.8 10.0.0.1 127.0.0.1 999.1.1.1 1.2.3.4.5'), exactly('ip:8.8.8.8'), 'public ones alone')
  t.match(foundIn('2606:4700:4700::1111 fe80::1 12:30:45'), exactly('ip:2606:4700:4700::1111'))
  t.match(foundIn('a4:83:e7:12:9c:4f ff:ff:ff:ff:ff:ff'), exactly('mac:a4:83:e7:12:9c:4f'))
  const wallets = [
    '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  ]
  for (const wallet of wallets) {
    t.match(foundIn(`to ${wallet}`), exactly(`crypto-address:${wallet}`), wallet)
    t.match(foundIn(`to ${wallet.slice(0, -1)}9`), exactly(), 'a wrong checksum')
  }
  t.equal(keccak256(''), 'c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470')
  t.match(placesUnder('at 52.52000, 13.40500'), exactly({ detector: 'geo', action: 'report' }))
  t.match(foundIn('at 152.52000, 13.40500'), exactly())
})

t.test('telephone numbers are found in international form, and as chosen countries write them', async t => {
  t.match(foundIn('call +49 30 901820 or 0041 44 668 18 00'), exactly('phone:+49 30 901820', 'phone:0041 44 668 18 00'))
  t.match(foundIn('030 9018 2000'), exactly(), 'no country is chosen')
  t.match(foundIn('030 9018 2000', { countries: ['DE'] }), exactly('phone:030 9018 2000'))
  t.match(foundIn('(415) 555-2671', { countries: ['US'] }), exactly('phone:(415) 555-2671'))
  t.match(foundIn('+999 123 456 789'), exactly(), 'no such country')
})

t.test('some numbers count only beside a word', async t => {
  t.match(foundIn('passport no. C01X00T47'), exactly('passport:C01X00T47'))
  t.match(foundIn('part no. C01X00T47'), exactly())
  t.match(foundIn('Geburtsdatum: 12.05.1980'), exactly('birth-date:12.05.1980'))
  t.match(foundIn('born on 12 May 1980 in'), exactly('birth-date:12 May 1980'))
  t.match(foundIn('Geburtsdatum: 12.05.1980', { languages: ['en'] }), exactly(), 'only the chosen languages')
  t.match(foundIn('released 12.05.1980'), exactly())
  t.match(foundIn('BIC: COBADEFFXXX'), exactly('bic:COBADEFFXXX'))
  t.match(foundIn('the CONSTANT COBADEFFXXX'), exactly())
})

t.test('keys are found by their form, and reported by their randomness', async t => {
  const key = `ghp_${'a1B2c3D4e5'.repeat(3)}`
  t.match(foundIn(`GITHUB ${key}`), exactly(`secret-pattern:${key}`))
  t.match(foundIn('postgres://app:s3cret-word@db/x'), exactly('secret-pattern:app:s3cret-word'))
  t.match(placesUnder('api_key = "zQ8!kP2xV9#mL4w"'), exactly({ detector: 'secret-entropy', action: 'report' }))
  t.match(foundIn('password = "aaaaaaaaaaaaaaa"'), exactly())
})

t.test('lists and patterns of the owner are found, and what is allowed is not', async t => {
  const list = {
    ...{ id: 'people', label: 'People', kind: 'PERSON', values: ['Anna', 'Anna Karenina', 'Li'] },
    ...{ wholeWord: true, caseSensitive: false },
  }
  t.match(
    foundIn('ANNA KARENINA met Anna, not Annabel or Lia; Li agreed', { lists: [list] }),
    exactly('list:ANNA KARENINA', 'list:Anna', 'list:Li'),
  )
  t.match(foundIn('Annabel', { lists: [{ ...list, wholeWord: false, caseSensitive: true }] }), exactly('list:Anna'))
  const pattern = { id: 'c', label: 'C', kind: 'CASE', regex: 'C-[0-9]{4}', action: 'report' } as const
  t.match(placesUnder('see C-1234', { patterns: [pattern] }), exactly({ kind: 'CASE', action: 'report' }))
  const allow = ['@example.org', '8.8.8.0/24', 'DE89370400440532013000']
  t.match(
    foundIn('a@example.org b@example.net 8.8.8.8 1.1.1.1 DE89 3704 0044 0532 0130 00', { allow }),
    exactly('email:b@example.net', 'ip:1.1.1.1'),
  )
})

t.test('of overlapping findings the longest holds, and a report hides nothing that is masked', async t => {
  const list = {
    ...{ id: 'l', label: 'L', kind: 'NAME', values: ['jane', 'jane@example.org and more'] },
    ...{ wholeWord: false, caseSensitive: false },
  }
  t.match(foundIn('jane@example.org and more', { lists: [list] }), exactly('list:jane@example.org and more'))
  t.match(foundIn('jane@example.org', { lists: [list] }), exactly('email:jane@example.org'))
  t.match(
    placesUnder('password=jane@example.org.1234xyzQ', { detectors: { 'secret-entropy': 'report' } }).map(
      ({ detector, action }) => `${detector} ${action}`,
    ),
    exactly('email mask'),
  )
})

t.test('a long text without end is searched in linear time', async t => {
  const hostile = [
    'a@'.repeat(50_000),
    '1 '.repeat(100_000),
    'A1'.repeat(100_000),
    '[['.repeat(50_000),
    'born '.repeat(40_000),
  ]
  for (const text of hostile) {
    const began = performance.now()
    placesUnder(text, { countries: ['DE', 'US'] })
    const ms = performance.now() - began
    t.ok(ms < 3_000, `${text.slice(0, 4)}… took ${Math.round(ms)} ms`)
  }
})
