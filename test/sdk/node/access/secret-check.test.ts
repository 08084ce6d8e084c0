import t from 'tap'
import { SecretCheck } from '../../../../sdk/node/access/secret-check.js'
import { newSecret } from '../../../../sdk/node/access/secret.js'

/** A check with the hashes that it finds. */
const checking = () => {
  const stored = new Map<string, string[]>()
  return { stored, secrets: new SecretCheck('sbc', id => stored.get(id) ?? []) }
}

t.test('a credential is valid while its hash is stored, also once it was proven', async t => {
  const { stored, secrets } = checking()
  const { id, text, hash } = newSecret('sbc')
  t.equal(secrets.check(text), undefined)
  stored.set(id, [newSecret('sbc').hash, hash])
  for (let round = 0; round < 3; round++) t.equal(secrets.check(text), id)
  stored.set(id, [newSecret('sbc').hash])
  t.equal(secrets.check(text), undefined, 'replaced')
  stored.set(id, [hash])
  t.equal(secrets.check(text), id)
  stored.delete(id)
  t.equal(secrets.check(text), undefined, 'removed')
})

t.test('proving one credential proves no other', async t => {
  const { stored, secrets } = checking()
  const { id, text, hash } = newSecret('sbc')
  stored.set(id, [hash])
  t.equal(secrets.check(text), id)
  const same = newSecret('sbc', id).text
  for (const other of [same, newSecret('sbc').text, text.replace('sbc', 'sbs'), `${text}x`, ''])
    t.equal(secrets.check(other), undefined, other)
})

t.test('a thousand credentials are valid at once', async t => {
  const { stored, secrets } = checking()
  const made = Array.from({ length: 1000 }, () => newSecret('sbc'))
  for (const { id, hash } of made) stored.set(id, [hash])
  for (let round = 0; round < 2; round++) t.ok(made.every(({ id, text }) => secrets.check(text) === id))
})
