import { createHash, randomBytes, randomInt } from 'node:crypto'
import t from 'tap'
import { TextScan } from '../../../plugins/outbox/text-scan.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import { redacted } from '../../../sdk/node/access/redact.js'
import { spread } from '../../support/lists.js'

const NONE = new Masker([])
const VALUE = 'correct-horse-battery'

const foundIn = (pieces: readonly Buffer[], masker = NONE): boolean => {
  const scan = new TextScan(masker)
  for (const piece of pieces) scan.push(piece)
  scan.end()
  return scan.found
}
const found = (text: string, at = text.length): boolean =>
  foundIn([Buffer.from(text.slice(0, at)), Buffer.from(text.slice(at))].filter(({ length }) => length > 0))

/** What did not hold, of many like cases: an assertion each would take longer than the search. */
const cases = () => {
  const wrong: string[] = []
  const holds = (is: boolean, about: string): void => void (is || wrong.push(about))
  return { wrong, holds }
}

const OF_WORDS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const letters = (length: number, from = OF_WORDS): string =>
  Array.from({ length }, () => from[randomInt(from.length)]).join('')
const hex = (length: number): string => letters(length, '0123456789abcdef')
const upper = (length: number): string => letters(length, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')

/** A secret access key; one of 10,000 looks like words, and is drawn again. */
const accessKey = (): string => {
  const key = randomBytes(30).toString('base64')
  const words = key.match(/[A-Z]?[a-z]{3,}/g)?.join('').length ?? 0
  return words <= 15 && /[a-z]/.test(key) && /[A-Z]/.test(key) && /[\d+/]/.test(key) ? key : accessKey()
}

/** The places in which a key stands alone. */
const PLACES: readonly ((key: string) => string)[] = [
  key => key,
  key => `${key}\n`,
  key => `\n${key}`,
  key => `aws_secret_access_key = ${key}\n`,
  key => `AWS_SECRET_ACCESS_KEY=${key}`,
  key => `export KEY='${key}'`,
  key => `{"secretAccessKey":"${key}"}`,
  key => `{"file":"[default]\\n${key}\\n"}`,
  key => `id,key\r\n1,${key}\r\n2,`,
  key => `the key is ${key}. It works`,
  key => `(${key})`,
  key => `\`${key}\``,
  key => `<td>${key}</td>`,
  key => `key:${key};`,
]

/** A key of each form that its issuer marks. */
const MARKED: readonly (() => string)[] = [
  ...['ghp', 'gho', 'ghu', 'ghs', 'ghr'].map(kind => () => `${kind}_${letters(36)}`),
  () => `github_pat_${letters(22)}_${letters(59)}`,
  ...['pat', 'oas', 'dt', 'rt', 'cbt', 'ptt', 'ft', 'imt', 'agent', 'soat'].map(
    kind => () => `gl${kind}-${letters(20)}`,
  ),
  ...['b', 'p', 'a', 's', 'r'].map(kind => () => `xox${kind}-${randomInt(1e9)}-${letters(24)}`),
  () => `xapp-1-${upper(11)}-${randomInt(1e9)}-${hex(64)}`,
  () => `https://hooks.slack.com/services/T${upper(8)}/B${upper(8)}/${letters(24)}`,
  () => `https://discord.com/api/webhooks/123456789012345678/${letters(68)}`,
  ...['AKIA', 'ASIA'].map(kind => () => kind + upper(16)),
  () => `AccountName=a;AccountKey=${letters(86)}==;EndpointSuffix=core.windows.net`,
  () => `npm_${letters(36)}`,
  () => `pypi-AgEIcHlwaS5vcmc${letters(70)}`,
  () => `rubygems_${hex(48)}`,
  () => `SG.${letters(22)}.${letters(43)}`,
  () => `hf_${letters(34, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ')}`,
  () => `dop_v1_${hex(64)}`,
  () => `dckr_pat_${letters(27)}`,
  ...['at', 'ca', 'pa', 'ss'].map(kind => () => `shp${kind}_${hex(32)}`),
  () => `whsec_${letters(32)}`,
  () => `ya29.${letters(60)}`,
  () => `GOCSPX-${letters(28)}`,
  () => `AGE-SECRET-KEY-1${upper(58)}`,
  () => `glsa_${letters(32)}_${hex(8)}`,
  () => `tskey-auth-${letters(12)}-${letters(24)}`,
  () => `hvs.${letters(24)}`,
  () => `lin_api_${letters(40)}`,
  () => `123456789:AA${letters(33)}`,
  ...['sk_live_', 'rk_live_', 'sk-ant-api03-', 'sk-proj-'].map(kind => () => `${kind}${letters(23)}1`),
  ...['RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED ', '', 'PGP '].map(
    kind => () => `-----BEGIN ${kind}PRIVATE KEY${kind === 'PGP ' ? ' BLOCK' : ''}-----\n${letters(64)}\n`,
  ),
  () => `-----BEGIN OpenVPN Static key V1-----\n${hex(32)}\n`,
  () => `PuTTY-User-Key-File-3: ssh-ed25519\n`,
]

const SCHEMES = [
  ...['http', 'https', 'ftp', 'sftp', 'ssh', 'git+https', 'postgres', 'postgresql', 'mysql', 'mongodb+srv', 'redis'],
  ...['amqps', 'smtp', 'ldap', 'jdbc:postgresql', 'socks5', 'clickhouse', 's3', 'HTTPS'],
]
const HOSTS = ['host', 'h/db', 'example.org/a.git', '10.0.0.1:5432/db', '[::1]:6379', 'db.internal:27017,b:27017/x?y=1']
const PASSWORDS = ['p', 'password', 'hunter2', 'p%40ss', 'a:b', 'a@b', '$ecret1', 's3cr3t!', '{x', letters(40)]

const addresses = SCHEMES.flatMap(scheme =>
  HOSTS.flatMap(host =>
    PASSWORDS.flatMap(password => [
      `${scheme}://user:${password}@${host}`,
      `${scheme}://:${password}@${host}`,
      ...(/[&?]|%/.test(host + password) ? [] : [`${scheme}://${host}?user=u&password=${password}`]),
    ]),
  ),
)

t.test('a key without a mark is found wherever it stands alone, and however it is cut', t => {
  const { wrong, holds } = cases()
  for (const place of PLACES) {
    for (let round = 0; round < 20; round++) {
      const key = accessKey()
      holds(found(place(key)), place(key))
      holds(!redacted(place(key)).includes(key), `${place(key)} redacted`)
    }
    const text = `${letters(700, 'abc \n')} ${place(accessKey())} ${letters(700, 'abc \n')}`
    for (let at = 650; at < 820; at += 7) holds(found(text, at), `${text} cut at ${at}`)
  }
  t.same(wrong, [])
  t.end()
})

t.test('a key with the mark of its issuer is found, and is in no redacted text', t => {
  const { wrong, holds } = cases()
  for (const make of MARKED) {
    const key = make()
    for (const text of [key, `KEY=${key}`, `{"k":"${key}"}`, `see ${key} there`]) {
      holds(found(text), text)
      if (!key.startsWith('PuTTY')) holds(!redacted(text).includes(key.trim()), `${text} redacted`)
    }
    for (let at = 1; at < key.length; at += 5) holds(found(`a ${key} b`, at), `${key} cut at ${at}`)
  }
  t.same(wrong, [])
  t.end()
})

t.test('a password in an address is found', t => {
  const { wrong, holds } = cases()
  for (const address of spread(addresses, 400)) {
    for (const text of [address, `DATABASE_URL="${address}"`, `[see](${address}) there`]) holds(found(text), text)
    for (let at = 1; at < address.length; at += 9) holds(found(address, at), `${address} cut at ${at}`)
  }
  t.same(wrong, [])
  t.end()
})

const WORDS = ['Create', 'User', 'Login', 'With', 'Provider', 'Index', 'Next', 'Language', 'Model', 'Handler', 'Image']
/** A name or a path of words, 40 characters long. */
const ofWords = (between: string): string => {
  let name = ''
  while (name.length < 60) name += between + WORDS[randomInt(WORDS.length)]!
  return `${name.slice(1, 40)}${randomInt(10)}`
}
const wrapped = (length: number): string => letters(length).replace(/.{64}/g, line => `${line}\n`)

/** What looks a little like a key or a password, and is none. */
const HARMLESS: readonly (() => string)[] = [
  ...['sha1', 'sha256', 'sha512'].map(kind => () => createHash(kind).update(randomBytes(9)).digest('hex')),
  () => createHash('sha1').update(randomBytes(9)).digest('hex').toUpperCase(),
  ...['sha256', 'sha384', 'sha512'].map(
    kind => () => `integrity="${kind}-${createHash(kind).update(randomBytes(9)).digest('base64')}"`,
  ),
  () => `commit ${hex(40)}\n\n    Merge ${hex(40)} into ${hex(40)}`,
  () => `-----BEGIN CERTIFICATE-----\n${wrapped(64 * 5 + 40)}\n-----END CERTIFICATE-----`,
  () => `{"cert":"${wrapped(64 * 5 + 40).replaceAll('\n', '\\n')}\\n"}`,
  () => `data:image/png;base64,${randomBytes(300).toString('base64')}`,
  () => ofWords(''),
  () => ofWords('/'),
  () => letters(40, OF_WORDS.slice(0, 26)),
  () => OF_WORDS.slice(0, 40),
  () => crypto.randomUUID(),
  () => `pk_live_${letters(24)}`,
  () => 'sk-cube-grid-animation',
  ...[
    '${PASSWORD}',
    '$PASSWORD',
    '$(cat p)',
    '{password}',
    '{{secret:DB}}',
    '%s',
    '%(pw)s',
    '%PW%',
    '***',
    'xxxx',
    '…',
  ].map(stand => () => `postgres://user:${stand}@host/db`),
  ...['<password>', '[redacted]', '[PASSWORD]', '${encodeURIComponent(p)}'].map(stand => () => `https://u:${stand}@h/`),
  () => `jdbc:mysql://h/db?user=u&password=\${PASSWORD}`,
  () => `docker://alpine:3.19@sha256:${hex(64)}`,
  () => 'git+ssh://git@github.com:user/repo.git#v1.2',
  () => 'http://localhost:3000/a@b and https://h:8443/x:y@z',
  () => 'https://user@host/ and mailto:ada@example.org',
  () => '"https://" + user + ":" + password + "@" + host',
]

t.test('hashes, names, certificates, variables and addresses without a password are none', t => {
  const { wrong, holds } = cases()
  for (const make of HARMLESS)
    for (let round = 0; round < 40; round++) {
      const text = make()
      holds(!found(text), text)
      holds(!found(`a line\n${text}\nanother`), `${text} in lines`)
      holds(!found(text, 1 + randomInt(text.length - 1)), `${text} cut`)
    }
  const long = Buffer.from(wrapped(64 * 5_000 + 40))
  for (let size = 97; size < 700; size += 101) {
    const pieces = Array.from({ length: Math.ceil(long.length / size) }, (_, at) =>
      long.subarray(at * size, (at + 1) * size),
    )
    holds(!foundIn(pieces), `a long text in pieces of ${size}`)
  }
  t.same(wrong, [])
  t.end()
})

/** A text as bytes, in every way that a program may read it. */
const CODINGS: { readonly [coding: string]: (text: string) => Buffer } = {
  'UTF-8': text => Buffer.from(text),
  'UTF-8 with a mark': text => Buffer.from(`\ufeff${text}`),
  'UTF-16, little end first, with a mark': text => Buffer.from(`\ufeff${text}`, 'utf16le'),
  'UTF-16, little end first': text => Buffer.from(text, 'utf16le'),
  'UTF-16, big end first, with a mark': text => Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
  'UTF-16, big end first': text => Buffer.from(text, 'utf16le').swap16(),
  'after a zero': text => Buffer.from(`\0${text}`),
  'before a zero': text => Buffer.from(`${text}\0`),
  'in a binary file': text =>
    Buffer.concat([randomBytes(40), Buffer.alloc(9), Buffer.from(text), Buffer.alloc(9, 255)]),
  'after a megabyte of zeros': text => Buffer.concat([Buffer.alloc(1024 ** 2), Buffer.from(text)]),
}

t.test('keys and stored values are found in every coding, and in files that are no text', t => {
  const { wrong, holds } = cases()
  const masker = new Masker([{ name: 'A', value: VALUE }])
  for (const [coding, bytes] of Object.entries(CODINGS))
    for (const text of [
      `it is ${VALUE} here`,
      `KEY=${accessKey()}\n`,
      'postgres://u:p@h/db',
      `a AKIA${upper(16)} b`,
      '-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl',
    ]) {
      const all = bytes(text)
      holds(foundIn([all], masker), `${text}: ${coding}`)
      const at = Math.floor(all.length / 2) + 1
      holds(foundIn([all.subarray(0, at), all.subarray(at)], masker), `${text}: ${coding}, cut`)
    }
  for (let round = 0; round < 10; round++) holds(!foundIn([randomBytes(100_000)], masker), 'random bytes')
  t.same(wrong, [])
  t.end()
})

t.test('a long text of almost-keys is searched quickly', t => {
  const begun = performance.now()
  for (const piece of [
    ...['a://', 'a://b:', 'a://b:c@', 'a?password=', 'x://?password={', 'A1b', '\\n', 'sk-', 'AKIA', '$A', '{}', 'xX'],
    ...['a://:$AXXX$AXXX', 'a://b:{}{}{}{', `${accessKey()}=`, '123456789:AA', 'SG.', 'hooks.slack.com/services/'],
  ])
    found(piece.repeat(400_000 / piece.length), 200_000)
  const taken = performance.now() - begun
  t.ok(taken < 10_000, `${Math.round(taken)} ms`)
  t.end()
})
