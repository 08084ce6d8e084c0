import t from 'tap'
import { type Credential, readBearer, readCredential, readHead } from '../../../kernel/auth/credential.js'
import { refusalOf } from './memory.js'

const good: [name: string, headers: string[], found: Credential | undefined][] = [
  ['no header at all', ['host', 'a'], undefined],
  ['a control token', ['X-Sandbox-Control', 'sbc_a.b'], { kind: 'token', value: 'sbc_a.b' }],
  ['a turn', ['x-sandbox-turn', 'v'], { kind: 'turn', value: 'v' }],
  ['an extension', ['x-sandbox-extension', 'v'], { kind: 'extension', value: 'v' }],
  ['a run', ['x-sandbox-run', 'v'], { kind: 'run', value: 'v' }],
  ['a bearer', ['authorization', 'Bearer sbs_a.b'], { kind: 'bearer', value: 'sbs_a.b' }],
  ['a bearer in any case', ['AUTHORIZATION', 'bEaReR v'], { kind: 'bearer', value: 'v' }],
  [
    'control before bearer, in any order of headers',
    ['authorization', 'Bearer v', 'x-sandbox-control', 'c'],
    { kind: 'token', value: 'c' },
  ],
  ['control before turn', ['x-sandbox-turn', 'v', 'x-sandbox-control', 'c'], { kind: 'token', value: 'c' }],
  ['turn before extension', ['x-sandbox-extension', 'e', 'x-sandbox-turn', 'v'], { kind: 'turn', value: 'v' }],
  ['extension before run', ['x-sandbox-run', 'r', 'x-sandbox-extension', 'e'], { kind: 'extension', value: 'e' }],
  ['run before bearer', ['authorization', 'Bearer v', 'x-sandbox-run', 'r'], { kind: 'run', value: 'r' }],
  [
    'the next header if the first is empty',
    ['x-sandbox-control', '', 'authorization', 'Bearer v'],
    { kind: 'bearer', value: 'v' },
  ],
  [
    'a header value that looks like a header name',
    ['a', 'x-sandbox-control', 'x-sandbox-run', 'r'],
    { kind: 'run', value: 'r' },
  ],
  ['a cookie, which is never read', ['cookie', 'x-sandbox-control=c'], undefined],
]

t.test('the first non-empty header decides', async t => {
  for (const [name, headers, found] of good) t.strictSame(readCredential(readHead(headers)), found, name)
})

const bad: [name: string, headers: string[], status: number][] = [
  ['two control tokens', ['x-sandbox-control', 'a', 'X-SANDBOX-CONTROL', 'a'], 400],
  [
    'two bearers after a valid control token',
    ['x-sandbox-control', 'a', 'authorization', 'Bearer a', 'authorization', 'Bearer b'],
    400,
  ],
  ['two empty turns', ['x-sandbox-turn', '', 'x-sandbox-turn', ''], 400],
  ['two hosts', ['Host', 'a', 'host', 'b'], 400],
  ['two origins', ['origin', 'a', 'Origin', 'a'], 400],
  ['two content types', ['content-type', 'a', 'Content-Type', 'b'], 400],
  ['a length and an encoding', ['content-length', '4', 'transfer-encoding', 'chunked'], 400],
  ['a joined control token', ['x-sandbox-control', 'a, b'], 400],
  ['a comma', ['x-sandbox-run', 'a,b'], 400],
  ['a blank', ['x-sandbox-turn', 'a b'], 400],
  ['a tab in a bearer', ['authorization', 'Bearer a\tb'], 400],
  ['two blanks in a bearer', ['authorization', 'Bearer  a'], 400],
  ['basic authentication', ['authorization', 'Basic YTpi'], 401],
  ['a bearer of nothing', ['authorization', 'Bearer'], 401],
  ['a token without a scheme', ['authorization', 'sbs_a.b'], 401],
]

t.test('an ambiguous head is refused', async t => {
  for (const [name, headers, status] of bad)
    t.equal((await refusalOf(() => readCredential(readHead(headers)))).status, status, name)
})

t.test('no refusal repeats the credential', async t => {
  const { message } = await refusalOf(() => readCredential(readHead(['x-sandbox-control', 'sbc_secret, other'])))
  t.notMatch(message, 'sbc_secret')
})

t.test('an open route reads only its own bearer', async t => {
  t.equal(readBearer(readHead(['x-sandbox-control', 'a b', 'authorization', 'Bearer v'])), 'v')
  t.equal(readBearer(readHead([])), undefined)
  t.equal(
    (await refusalOf(() => readBearer(readHead(['authorization', 'Bearer a', 'authorization', 'Bearer a'])))).status,
    400,
  )
})
