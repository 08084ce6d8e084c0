import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { OPERATIONS } from '../support/schema.js'
import { checkLanded, daemonFor, runProgram, typeFaults } from './client-turn.js'

const COMMAND = 'npx orval@8 --config test/fixtures/clients/orval.config.mjs'

t.test('the functions checked in are those of the calls as they are now', t => {
  const text = globSync('test/fixtures/clients/orval/**/*.ts')
    .map(file => readFileSync(file, 'utf8'))
    .join('\n')
  const calls = {
    agentRun: 'POST /agent',
    agentsGet: 'GET /agents/{id}',
    agentReply: 'POST /agent/reply',
    agentsLand: 'POST /agents/{id}/land',
  }
  for (const [name, call] of Object.entries(calls)) {
    const made = [...text.matchAll(new RegExp(`^export type ${name}Response(\\d{3}|Default) =`, 'gm'))].map(
      ([, status]) => status!.toLowerCase(),
    )
    const { responses } = OPERATIONS.find(operation => operation.call === call)!
    t.same(made.toSorted(), Object.keys(responses).toSorted(), `${call}: run ${COMMAND}`)
  }
  t.end()
})

t.test('the functions that orval makes of the document do a turn with a card and land it', async t => {
  const program = resolve('test/fixtures/clients/orval-turn.ts')
  t.same(typeFaults(program), [], 'every answer and every refusal has a type')
  const daemon = await daemonFor(t)
  t.same(await runProgram(program, daemon), { reason: 'completed', landed: true })
  await checkLanded(t, daemon)
})
