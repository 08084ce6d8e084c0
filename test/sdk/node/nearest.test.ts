import t from 'tap'
import { nearest } from '../../../sdk/node/nearest.js'

t.test('a mistyped name suggests the nearest one, and an unrelated word suggests none', async t => {
  const known = ['agentRetentionDays', 'subagentDepth', 'subagentsAtOnce']
  t.equal(nearest('agentRetentionDay', known), 'agentRetentionDays')
  t.equal(nearest('SubAgentdepht', known), 'subagentDepth')
  t.equal(nearest('colour', known), undefined)
  t.equal(nearest('x'.repeat(100_000), known), undefined)
  t.equal(nearest('anything', []), undefined)
})
