import t from 'tap'
import { TokenRestorer, tokenPlaces } from '../../../sdk/node/access/token-restorer.js'

const VALUES = new Map([
  ['[[EMAIL_1]]', 'jane@example.org'],
  ['[[BIRTH_DATE_1]]', '12 May 1980'],
  ['[[NAME_1]]', 'Ann "A\\B" O’Hara & Co'],
])
const restorer = () => new TokenRestorer(token => VALUES.get(token))
const restored = (text: string): string => restorer().whole(text)
const byCharacter = (text: string): string => {
  const stream = restorer()
  return [...text].map(char => stream.push(char)).join('') + stream.end()
}

t.test('tokens are restored in every spelling that models make of them', async t => {
  const spellings = [
    ...['[[EMAIL_1]]', '[[email_1]]', '[[ EMAIL_1 ]]', '[ [EMAIL_1] ]', '[[EMAIL _ 1]]', '[EMAIL_1]]', '[[EMAIL_1]'],
    ...['\\[\\[EMAIL\\_1\\]\\]', '[[EMAIL\\_1]]'],
  ]
  for (const spelling of spellings)
    for (const work of [restored, byCharacter])
      t.equal(work(`to ${spelling}, now`), 'to jane@example.org, now', spelling)
  t.equal(restored('%5B%5BEMAIL_1%5D%5D'), 'jane%40example.org')
  t.equal(byCharacter('x [[BIRTH_DATE_1]] y'), 'x 12 May 1980 y')
})

t.test('a token that the shield did not give stays as it is, and is listed', async t => {
  const stream = restorer()
  const text = '[[EMAIL_2]] [EMAIL_1] [[x]] [a](b) [[[ \\ % %5 [[EMAIL'
  t.equal(stream.whole(text), text)
  t.same([...stream.unknown], ['[[EMAIL_2]]'])
  t.equal(byCharacter(text), text)
  t.equal(restored('C:\\[[EMAIL_1]]\\x [[[EMAIL_1]]]'), 'C:\\jane@example.org\\x [jane@example.org]')
})

t.test('text before a token passes at once, and only what may become one is held', async t => {
  const stream = restorer()
  t.equal(stream.push('Hello '), 'Hello ')
  t.equal(stream.push('you ['), 'you ')
  t.equal(stream.push('[EMAIL_1'), '')
  t.equal(stream.push(']] and [x] (y'), 'jane@example.org and [x] (y')
  t.equal(stream.push(`[[${'A'.repeat(30)}`).length + stream.push('A'.repeat(100)).length + stream.end().length, 132)
})

t.test('a value in JSON stays valid JSON, and in an address it is encoded', async t => {
  const name = VALUES.get('[[NAME_1]]')!
  const input = JSON.stringify({ command: 'echo [[NAME_1]]', '[[EMAIL_1]]': ['[[email_1]]', 1] })
  t.same(JSON.parse(restorer().json(input)), { command: `echo ${name}`, 'jane@example.org': ['jane@example.org', 1] })
  t.same(JSON.parse(restored('{"name": "[[NAME_1]]", "n": 1}')), { name, n: 1 })
  t.equal(restored('say [[NAME_1]]'), `say ${name}`)
  t.equal(restored('https://x.org/?q=[[NAME_1]]&p=1'), `https://x.org/?q=${encodeURIComponent(name)}&p=1`)
  t.equal(restorer().json('{"cut": "[[NAME_1]]'), '{"cut": "Ann \\"A\\\\B\\" O’Hara & Co')
})

t.test('what was restored is counted, and what lost its brackets too', async t => {
  const stream = restorer()
  stream.whole('[[EMAIL_1]] [[EMAIL_1]] EMAIL_1 OTHER_1')
  t.same([...stream.restored], [['[[EMAIL_1]]', 2]])
  t.equal(stream.unrestored, 1)
  t.equal(tokenPlaces('[[A_1]] [[b_2] [C_3]').length, 2)
})
