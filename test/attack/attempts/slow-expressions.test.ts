import t from 'tap'
import { tookLess } from '../../support/in-time.js'
import { expressions, slowestOf } from './slow-expressions.js'

t.setTimeout(600_000)

t.test('no regular expression of the product takes a second for sixteen thousand characters', async t => {
  const all = expressions()
  t.ok(all.length > 800, `${all.length} expressions`)
  for (const expression of all) {
    const { ms, at } = slowestOf(expression)
    if (!tookLess(ms, 1_000))
      t.fail(`${expression.file}: ${Math.round(ms)} ms, ${expression.text} for ${JSON.stringify(at)}`)
  }
})
