import t from 'tap'
import { hashOf, holds, newSecret, readSecret } from '../../../../sdk/node/access/secret.js'

t.test('a credential is its prefix, 16 bytes of id and 32 bytes of secret', async t => {
  const { id, text, hash } = newSecret('sbs')
  t.match(text, /^sbs_[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/)
  t.strictSame(readSecret('sbs', text), { id, hash })
  t.equal(Buffer.from(id, 'base64url').length, 16)
  t.notMatch(text, hash)
})

t.test('a text of another form is not a credential', async t => {
  const { text } = newSecret('sbc')
  for (const other of [
    '',
    'sbs',
    text.replace('sbc', 'sbs') + 'x',
    ` ${text}`,
    `${text}\n`,
    text.slice(0, -1),
    text.replace('.', '_'),
    `${text}.${text}`,
  ]) {
    t.equal(readSecret('sbc', other), undefined, JSON.stringify(other))
  }
  t.equal(readSecret('sbs', text), undefined, 'a control token is not a session')
})

t.test('only stored hashes are found', async t => {
  t.equal(holds([hashOf('a'), hashOf('b')], hashOf('b')), true)
  t.equal(holds([hashOf('a')], hashOf('b')), false)
  t.equal(holds([], hashOf('b')), false)
})
