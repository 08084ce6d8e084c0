import { resolve } from 'node:path'
import t from 'tap'
import { checkLanded, daemonFor, runProgram, typeFaults } from './client-turn.js'

t.test('the functions that orval makes of the document do a turn with a card and land it', async t => {
  const program = resolve('test/fixtures/clients/orval-turn.ts')
  t.same(typeFaults(program), [], 'every answer and every refusal has a type')
  const daemon = await daemonFor(t)
  t.same(await runProgram(program, daemon), { reason: 'completed', landed: true })
  await checkLanded(t, daemon)
})
