import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { Masker } from '../../../../sdk/node/access/masker.js'

const VALUE = 'p@ss/"wörd"\n$1\\x#y?>'
const one = new Masker([{ name: 'T', value: VALUE }])
const ref = '{{secret:T}}'
const BEGIN = '-----BEGIN OPENSSH PRIVATE KEY-----'
const END = '-----END OPENSSH PRIVATE KEY-----'

t.test('a value is replaced in each of its forms', async t => {
  const bytes = Buffer.from(VALUE)
  const forms: { [form: string]: string } = {
    raw: VALUE,
    json: JSON.stringify(VALUE).slice(1, -1),
    'json in json': JSON.stringify(JSON.stringify(VALUE)).slice(3, -3),
    percent: encodeURIComponent(VALUE),
    'percent in small letters': encodeURIComponent(VALUE).replace(/%../g, code => code.toLowerCase()),
    form: new URLSearchParams({ v: VALUE }).toString().slice(2),
    base64: bytes.toString('base64'),
    base64url: bytes.toString('base64url'),
    hex: bytes.toString('hex'),
    HEX: bytes.toString('hex').toUpperCase(),
  }
  for (const [form, text] of Object.entries(forms)) {
    t.equal(one.mask(`a ${text} b`), `a ${ref} b`, form)
    t.equal(one.mask(text + text), ref + ref, `${form}, twice`)
  }
})

t.test('a value is replaced however its characters are escaped, also when the text arrives in pieces', async t => {
  const value = 'tok&5f<3e>"9a\'7b/1c+2d=é'
  const masker = new Masker([{ name: 'T', value }])
  const kinds: ((code: number) => string)[] = [
    code => String.fromCharCode(code),
    code => `&#${code};`,
    code => `&#x${code.toString(16)};`,
    code => `&#X00${code.toString(16).toUpperCase()};`,
    code => `\\u${code.toString(16).padStart(4, '0')}`,
    code => (code < 128 ? `%${code.toString(16).padStart(2, '0')}` : '&eacute;'),
    code => `&amp;#${code};`,
    code => `&#38;#x${code.toString(16)};`,
  ]
  const choices = fc.array(fc.nat(kinds.length - 1), { minLength: value.length, maxLength: value.length })
  fc.assert(
    fc.property(choices, fc.array(fc.nat(9), { minLength: 1 }), (chosen, cuts) => {
      const text = `a ${chosen.map((kind, at) => kinds[kind]!(value.charCodeAt(at))).join('')} b`
      const stream = masker.stream()
      let masked = ''
      for (let from = 0, at = 0; from < text.length; at++) {
        const length = cuts[at % cuts.length]! + 1
        masked += stream.push(text.slice(from, from + length))
        from += length
      }
      return masker.mask(text) === `a ${ref} b` && masked + stream.end() === `a ${ref} b`
    }),
    { numRuns: 500 },
  )
})

t.test('a value is replaced in base64 at every offset of the encoded text', async t => {
  for (const before of ['', 'a', 'ab', 'abc', 'user:', '\u00fc']) {
    for (const kind of ['base64', 'base64url'] as const) {
      const masked = one.mask(Buffer.from(`${before}${VALUE} and more`).toString(kind))
      t.ok(masked.includes(ref), `${kind} after ${before.length}`)
      const left = Buffer.from(masked.split(ref)[0]!, kind).toString('latin1')
      t.ok(left.length <= Buffer.byteLength(before), 'the remaining text is before it')
    }
  }
})

t.test('long lines of a multi-line value are replaced, but not the header and footer of a key', async t => {
  const key = [BEGIN, 'b3BlbnNzaC1rZXktdjEA', 'short', 'AAAABG5vbmUAAAAEbm9u', END, ''].join('\n')
  const masker = new Masker([{ name: 'K', value: key }])
  t.equal(masker.mask(key), '{{secret:K}}')
  t.equal(masker.mask('  b3BlbnNzaC1rZXktdjEA\r\n'), '  {{secret:K}}\r\n')
  t.equal(masker.mask('short'), 'short')
  t.equal(masker.mask(BEGIN), BEGIN)
})

t.test('values shorter than 8 characters are not masked, and without values nothing changes', async t => {
  const masker = new Masker([
    { name: 'S', value: '1234567' },
    { name: 'E', value: '' },
  ])
  t.ok(masker.empty)
  t.equal(masker.mask('1234567'), '1234567')
  const same = { a: ['1234567'] }
  t.equal(masker.maskJson(same), same)
  t.equal(masker.stream().push('1234567'), '1234567')
})

t.test('overlapping values are replaced completely, and nested ones by the name of the outer value', async t => {
  const masker = new Masker([
    { name: 'A', value: 'abcdefgh12345678' },
    { name: 'B', value: '12345678zzzzzzzz' },
    { name: 'C', value: 'cdefgh1234' },
  ])
  t.equal(masker.mask('x abcdefgh12345678zzzzzzzz y'), 'x {{secret:A}}{{secret:B}} y')
  t.equal(masker.mask('abcdefgh12345678'), '{{secret:A}}')
  t.equal(masker.mask('-cdefgh1234-'), '-{{secret:C}}-')
})

t.test('JSON is masked at any depth, including keys, and is returned unchanged if nothing was found', async t => {
  const frame = { kind: 'delta', [VALUE]: 1, list: [{ text: `say ${VALUE}` }, 7, undefined], clean: { a: 'b' } }
  const masked = one.maskJson(frame)
  t.same(masked, { kind: 'delta', [ref]: 1, list: [{ text: `say ${ref}` }, 7, undefined], clean: { a: 'b' } })
  t.equal(masked.clean, frame.clean)
  const clean = { a: [{ b: 'c' }] }
  t.equal(one.maskJson(clean), clean)
})

const few = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '"', '/', 'é'), minLength: 8, maxLength: 24 })
const values = fc.array(few, { minLength: 1, maxLength: 5 })

t.test('a text in any pieces is masked like the whole text', async t => {
  fc.assert(
    fc.property(
      values,
      fc.array(fc.oneof(fc.string({ maxLength: 6 }), few, fc.nat(4)), { maxLength: 8 }),
      fc.array(fc.nat(12), { minLength: 1, maxLength: 20 }),
      (held, parts, cuts) => {
        const masker = new Masker(held.map((value, at) => ({ name: `N${at}`, value })))
        const text = parts.map(part => (typeof part === 'number' ? held[part % held.length]! : part)).join('')
        const stream = masker.stream()
        let out = ''
        let from = 0
        for (let at = 0; from < text.length; at++) {
          const size = cuts[at % cuts.length]! + (at % 7 === 0 ? 1 : 0)
          out += stream.push(text.slice(from, from + size))
          from += size
        }
        t.equal(out + stream.end(), masker.mask(text))
      },
    ),
    { numRuns: 3000, seed: 7 },
  )
})

t.test('no value of at least 8 characters stays in a masked text', async t => {
  fc.assert(
    fc.property(values, fc.array(fc.nat(4), { maxLength: 8 }), fc.string(), (held, order, between) => {
      const masker = new Masker(held.map((value, at) => ({ name: `N${at}`, value })))
      const masked = masker.mask(order.map(at => held[at % held.length]!).join(between))
      const rest = masked.replace(/\{\{secret:N\d\}\}/g, '\u0000')
      t.notOk(held.some(value => rest.includes(value)))
    }),
    { numRuns: 2000, seed: 7 },
  )
})

t.test('only an ending that may become a value is held back', async t => {
  const masker = new Masker([{ name: 'T', value: 'correct horse battery' }])
  const stream = masker.stream()
  t.equal(stream.push('the corr'), 'the ')
  t.equal(stream.push('idor and the correct horse batt'), 'corridor and the ')
  t.equal(stream.push('ery!'), '{{secret:T}}!')
  t.equal(stream.end(), '')
})

t.test('a value of 64 KiB that arrives in small pieces is replaced', async t => {
  const value = Array.from({ length: 1024 }, (_, at) => createHash('sha256').update(String(at)).digest('hex')).join('')
  const stream = new Masker([{ name: 'T', value }]).stream()
  let out = stream.push('<')
  for (let at = 0; at < value.length; at += 64) out += stream.push(value.slice(at, at + 64))
  t.equal(out + stream.push('>') + stream.end(), '<{{secret:T}}>')
})
