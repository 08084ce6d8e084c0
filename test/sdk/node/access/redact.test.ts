import t from 'tap'
import { asData, redacted, redactedJson, redactedPieces, visible } from '../../../../sdk/node/access/redact.js'
import { newSecret } from '../../../../sdk/node/access/secret.js'
import { inTime } from '../../../support/in-time.js'

const HIDDEN = 'Hid3nHid3nHid3nHid3n'

t.test('every form of a credential is replaced, and other text is unchanged', t => {
  const secret = newSecret('sbc').text
  for (const text of [
    secret,
    `x ${secret}, y`,
    `Authorization: Bearer ${HIDDEN}`,
    `authorization=Basic ${HIDDEN}==`,
    `authorization: ${HIDDEN} {{secret:API}}`,
    `authorization: Bearer {{secret:API}}${HIDDEN}`,
    `bearer ${HIDDEN}`,
    `"authorization":"Bearer ${HIDDEN}"`,
    `{\\"authorization\\":\\"Bearer ${HIDDEN}\\"}`,
    `cookie: sid=${HIDDEN}; b=${HIDDEN}`,
    `x-sandbox-control: ${HIDDEN}`,
    `/x?ticket=${HIDDEN}&a=1`,
    `/x?a=1&code=${HIDDEN}`,
    `/x?state=${HIDDEN}#${'x'}`,
    `https://h/p?visitor=${HIDDEN}`,
    `?sentry_key=${HIDDEN}`,
    `https://h/#access_token=${HIDDEN}`,
    `https://ada:${HIDDEN}@h/`,
    `https://${HIDDEN}@h/`,
    `sk-${HIDDEN}`,
    `ghp_${HIDDEN}abc`,
    `eyJ${HIDDEN}.${HIDDEN}.${HIDDEN}`,
    `-----BEGIN PRIVATE KEY-----\n${HIDDEN}\n-----END PRIVATE KEY-----`,
    `redirect=https%3A%2F%2Fh%3Fcode%3D${HIDDEN}`,
  ])
    t.notMatch(redacted(text), new RegExp(`${HIDDEN}|${secret.split('.')[1]!.replace(/[-]/g, '\\-')}`), text)
  for (const text of [
    'a bearer of news',
    'curl -H "authorization: Bearer {{secret:API}}" https://example.org/',
    '{"authorization":"{{secret:github/token}}"}',
    'the code of conduct',
    'state: running',
    '/x?n=1',
    'user@example.org',
    'https://example.org/a@b',
    'sbx_',
    'exit code=1',
  ])
    t.equal(redacted(text), text)
  t.end()
})

t.test('a field with the name of a secret is replaced in a line of JSON, which stays valid JSON', t => {
  const line = JSON.stringify({
    level: 'info',
    token: HIDDEN,
    err: { code: 'ENOENT', headers: { 'x-sandbox-control': HIDDEN, cookie: `a="${HIDDEN}"` } },
    password: `a\\"${HIDDEN}`,
    url: `/x?ticket=${HIDDEN}`,
  })
  const safe = redactedJson(line)
  t.notMatch(safe, HIDDEN)
  t.match(JSON.parse(safe), { level: 'info', token: '[redacted]', err: { code: 'ENOENT' } })
  t.end()
})

t.test('any text from outside becomes one line of data', t => {
  t.equal(asData('a\r\nb\u001b[31mc\u202ed\u2066e\u0000f\u0085g\ud800h\u200di', 100), 'a b[31mcdef g\ufffdh\u200di')
  t.equal(asData('x'.repeat(50), 10), `${'x'.repeat(9)}…`)
  t.notMatch(
    asData(`sb\u200bc_${'a'.repeat(22)}.${'b'.repeat(43)}`, 100),
    'bbbb',
    'invisible characters do not hide a credential',
  )
  const cut = asData(`${'x'.repeat(30)} bearer ${HIDDEN}`, 45)
  t.notMatch(cut, HIDDEN.slice(0, 5), 'cutting does not hide one')
  t.equal(visible('a\u001b]0;x\u0007\u202eb\nc'), 'a\\u001b]0;x\\u0007\\u202eb\nc')
  t.end()
})

t.test('a long text of almost-credentials is searched quickly', t => {
  const began = performance.now()
  for (const piece of [
    'authorization ',
    'bearer ',
    'sbc_',
    'eyJ',
    '?token',
    '-----BEGIN PRIVATE KEY-----',
    'a://',
    '"token":"\\',
  ])
    redactedJson(piece.repeat(200_000 / piece.length))
  t.ok(inTime(began, 2000))
  t.end()
})

t.test('a private key is replaced in lines that arrive one by one, and other text is not treated as a key', t => {
  const begin = '-----BEGIN RSA PRIVATE KEY-----'
  const end = '-----END RSA PRIVATE KEY-----'
  const one = redactedPieces()
  t.same(
    [
      ['before', begin],
      ['Proc-Type: 4,ENCRYPTED', '', 'aGlkZGVu'],
      ['aGlkZGVu', end, 'after', 'sbc_hiddenhidden'],
      ['last'],
    ].map(one),
    [['before', '[redacted]'], [], ['after', 'sbc_[redacted]'], ['last']],
  )
  const other = redactedPieces()
  t.same([[begin], ['these are words, no key'], ['aGlkZGVu']].map(other), [
    ['[redacted]'],
    ['these are words, no key'],
    ['aGlkZGVu'],
  ])
  const endless = redactedPieces()
  endless([begin])
  t.equal(Array.from({ length: 1_000 }, () => endless(['word'])).flat().length, 600, 'the length of a key is limited')
  t.end()
})
