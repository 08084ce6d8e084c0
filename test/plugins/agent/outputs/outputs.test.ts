import { readFileSync } from 'node:fs'
import t from 'tap'
import type { ShortenedOutput } from '../../../../plugins/agent/outputs/output-ledger.js'
import { shortenOutputs } from '../../../../plugins/agent/outputs/shorten.js'
import { briefedWorld } from '../briefing/world.js'
import { beginning, exactly } from '../../../support/lists.js'
import type { SeenRequest } from '../../../support/servers/model-server.js'

const recorded = (name: string): string =>
  readFileSync(new URL(`../../../../../test/fixtures/outputs/${name}.txt`, import.meta.url), 'utf8')
const resultsIn = ({ body: { messages = [] } }: SeenRequest): string[] =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
const INSTALL = recorded('npm-install')
const WHOLE = /The whole output: Read (\/\S+\.txt)\]/

t.test('the output of a command is shortened before the model reads it, and the whole of it can be read', async t => {
  const files = { 'output.txt': INSTALL, npm: '#!/bin/sh\ncat output.txt\n' }
  const command = { name: 'Shell', input: { command: 'sh ./npm install' } }
  const world = await briefedWorld(
    t,
    (request, nth) => {
      if (nth % 4 === 0) return { calls: [command] }
      const path = WHOLE.exec(resultsIn(request).join('\n'))?.[1]
      if (nth % 4 === 1 && path)
        return {
          calls: [
            { name: 'Read', input: { path } },
            { name: 'Shell', input: { command: `cat ${path}` } },
            { name: 'Read', input: { path: path.replace(/\d+\.txt$/, '99.txt') } },
            { name: 'Read', input: { path: path.replace(/\d+\.txt$/, '../home/x') } },
            { name: 'Write', input: { path, content: 'x' } },
            { name: 'Shell', input: { command: `echo x > ${path}` } },
          ],
        }
      return { text: ['done'] }
    },
    { files },
  )
  const { server, set, turn, client } = world
  const frames = await turn('off')
  t.same(resultsIn(server.requests.at(-1)!), [INSTALL], 'off: the model reads all of it')
  await set({ outputCleaners: '' })
  server.requests.length = 0
  const shown = await turn('on')
  const [short = '', whole, shell, gone, outside, written, overwritten] = resultsIn(server.requests.at(-1)!)
  t.ok(short.length < INSTALL.length / 4, `${short.length} of ${INSTALL.length}`)
  t.match(short, /added \d+ packages/)
  t.match(short, WHOLE)
  t.equal(whole, INSTALL)
  t.equal(shell, INSTALL)
  t.match(gone, 'is gone: only the newest outputs are kept')
  t.match(outside, /absolute/)
  t.match(written, /absolute/)
  t.match(overwritten, /read-only/i)
  const contentOf = (all: typeof frames) =>
    all.find(frame => frame.kind === 'tool_call_update' && frame.status === 'completed')
  t.same(contentOf(shown), contentOf(frames), 'people see all of it')
  t.match(await client.call('GET /settings/savings', {}), {
    input: {
      commands: 3,
      perCleaner: beginning({ id: 'node-packages', commands: 1 }),
      holdout: { cleaned: 3, heldOut: 0 },
    },
  })
  await set({ outputHoldout: 1 })
  server.requests.length = 0
  await turn('held')
  t.same(resultsIn(server.requests.at(-1)!), [INSTALL], 'held out: the model reads all of it')
  t.match(await client.call('GET /settings/savings', {}), { input: { holdout: { cleaned: 3, heldOut: 1 } } })
  await set({ outputHoldout: 0, outputCleaners: '-node-packages' })
  server.requests.length = 0
  await turn('without')
  t.match(resultsIn(server.requests.at(-1)!)[0], 'npm http fetch', 'a cleaner that is left out leaves nothing out')
})

t.test('a command of the agent’s own is shortened only by what no terminal shows', async t => {
  const line = 'npm http fetch GET 200 https://packages.example/x\n10%\r20%\rready\n'
  const print = `process.stdout.write(${JSON.stringify(line)}.repeat(60))`
  const { server, set, turn } = await briefedWorld(t, (_request, nth) =>
    nth === 0 ? { calls: [{ name: 'Code', input: { source: print } }] } : { text: ['done'] },
  )
  await set({ outputCleaners: '' })
  await turn('code')
  const [short = ''] = resultsIn(server.requests.at(-1)!)
  t.match(short, 'npm http fetch')
  t.match(short, WHOLE)
  t.notMatch(short, '10%')
})

t.test('what is counted is what a model would have read, which is cut where an output is very long', async t => {
  const counted: ShortenedOutput[] = []
  const shorten = (outputHoldout: number) =>
    shortenOutputs(
      { outputCleaners: '', outputHoldout },
      {
        ...{ conversationId: 'c', run: 'r', mask: text => text, log: { warn: message => void t.fail(message) } },
        whole: { keep: async () => '/whole/1.txt' },
        ledger: { add: output => void counted.push(output) },
      },
    )!
  const output = 'npm http fetch GET 200 https://packages.example/x\n'.repeat(20_000)
  for (const share of [0, 1]) await shorten(share)({ output, command: 'npm install' })
  const most = { rawCharacters: 30_000 }
  t.match(counted, exactly({ heldOut: false, ...most }, { heldOut: true, ...most, emittedCharacters: 30_000 }))
  t.ok(counted[0]!.emittedCharacters < 500)
})

t.test('short answers are compared with turns that were not asked', async t => {
  const { set, turn, client } = await briefedWorld(t, () => ({ text: ['It is done.'] }))
  await set({ terseOutput: true, terseHoldout: 0.5 })
  for (let n = 0; n < 6; n++) await turn('c')
  const { output } = await client.call('GET /settings/savings', {})
  const [metric] = output.metrics
  t.match(output, { minTurns: 30, sampleUnit: 'turns', cohort: 'terse-1 without 0.5' })
  t.equal(metric!.on.turns + metric!.off.turns, 6)
  t.ok(metric!.on.turns === 0 || metric!.on.mean === 11)
  t.equal(metric!.controlTurnsNeeded, 30 - metric!.off.turns)
})
