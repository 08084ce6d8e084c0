import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith } from '../../support/daemon.js'
import { sandbox } from './cli-process.js'

t.test('a step of a pipeline ends with a word and an exit code', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const { token } = await daemon.token('land')
  const env = { SANDBOX_URL: daemon.url, SANDBOX_TOKEN: token }
  const step = (...args: string[]) => sandbox(['ci-step', ...args], { env })

  await t.test('completed, with its work landed when asked', async t => {
    const done = await step('write n.txt\n| one', '--isolated', '--land')
    t.match(done, { code: 0, out: /^completed \(conversation c-/ })
    t.ok(existsSync(join(daemon.workspace, 'n.txt')))
    const nothing = await step('say fine', '--isolated', '--land', '--json')
    t.match(JSON.parse(nothing.out), { step: 'completed', run: /^r-/ })
    t.equal(nothing.code, 0)
  })
  await t.test('parked when a person is asked', async t => {
    const parked = await step('ask Which colour?\n| Red\n| Blue', '--isolated')
    t.match(parked, { code: 4, out: /^parked/ })
  })
  await t.test('failed when the turn does', async t => {
    t.match(await step('fail no luck', '--isolated'), { code: 1, out: /^failed .*no luck/ })
  })
  await t.test('timeout when it takes longer, and the turn goes on', async t => {
    const late = await step('wait 60000', '--isolated', '--timeout', '1s', '--conversation', 'slow')
    t.match(late, { code: 1, out: /^timeout/ })
    t.equal((await daemon.client.call('GET /agents/{id}', { id: 'slow' })).lastEnd, undefined)
    await daemon.client.call('POST /agent/stop', { conversationId: 'slow' })
  })
  await t.test('refused when its work conflicts with the workspace', async t => {
    writeFileSync(join(daemon.workspace, 'n.txt'), 'another\n')
    const refused = await step('write n.txt\n| two', '--isolated', '--land')
    t.match(refused, { code: 5, out: /^refused .*conflicts with the workspace/ })
  })
  await t.test('no daemon is not the same as a person who is waited for', async t => {
    const nobody = { SANDBOX_URL: 'http://127.0.0.1:9', SANDBOX_TOKEN: token }
    t.equal((await sandbox(['ci-step', 'say x'], { env: nobody })).code, 3)
  })
  await t.test('a wrong command line is misuse', async t => {
    t.equal((await step()).code, 2)
    t.equal((await step('say x', '--timeout', 'soon')).code, 2)
  })
})
