import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ApplyFrame, Capability } from '../../../plugins/capabilities/contract.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { callTool, realServer, resultOf } from './servers-support.js'
import { capabilitiesDaemon } from './support.js'
import { programFile } from '../../../sdk/node/programs/package.js'

const connect = async ({ client }: RunningDaemon, capability: Capability): Promise<ApplyFrame | undefined> => {
  let last: ApplyFrame | undefined
  for await (const frame of await client.call('POST /capabilities', capability)) last = frame
  return last
}

t.test('what the program connected is there after it was killed', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const first = await spawnDaemon(t, { workspace, data })
  const command = `node ${programFile('plugins/agent/providers/script-agent.js')}`
  t.match(await connect(first, { id: 'scripts', kind: 'agent', config: { command } }), { kind: 'result' })
  const config = { transport: 'stdio', command: `node ${realServer('memory')}` } as const
  t.match(await connect(first, { id: 'memory', kind: 'mcp', config }), { kind: 'result' })
  await first.kill9()

  const second = await spawnDaemon(t, { workspace, data })
  const connected = async () => (await second.client.call('GET /capabilities')).capabilities
  let capabilities = await connected()
  // A start checks them in the background.
  while (capabilities.some(({ status }) => status.state === 'pending')) {
    await new Promise(resolve => setTimeout(resolve, 50))
    capabilities = await connected()
  }
  t.match(
    capabilities,
    exactly(
      { id: 'scripts', status: { state: 'active' } },
      { id: 'memory', status: { state: 'active' }, tools: Number },
    ),
  )
  t.same(readdirSync(join(data, 'homes/programs')).sort(), ['memory', 'scripts'])
  for (const id of ['scripts', 'memory']) await second.client.call('DELETE /capabilities/{id}', { id })
  t.notOk(existsSync(join(data, 'homes/programs/scripts')))
  t.equal(await second.terminate(), 0)
})

t.test('an attempt that a kill cut off leaves nothing', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const first = await spawnDaemon(t, { workspace, data })
  const silent = { id: 'silent', kind: 'agent', config: { command: 'sleep 60' } } as const
  const begun = await first.once.call('POST /capabilities', silent)
  const { value: step } = await begun[Symbol.asyncIterator]().next()
  t.match(step, { kind: 'log' })
  while (!existsSync(join(data, 'homes/programs/silent'))) await new Promise(resolve => setTimeout(resolve, 20))
  await first.kill9()

  const second = await spawnDaemon(t, { workspace, data })
  t.same((await second.client.call('GET /capabilities')).capabilities, [])
  t.notOk(existsSync(join(data, 'homes/programs/silent')))
  t.equal(await second.terminate(), 0)
})

t.test('in a process of its own the group connects, calls and cancels as in that of the daemon', async t => {
  const { daemon, vault } = await capabilitiesDaemon(t, { apart: ['capabilities'] })
  const config = {
    transport: 'stdio',
    command: `node ${realServer('everything')} stdio`,
    env: 'TEAM=blue-team-7',
  } as const
  for await (const _ of await daemon.client.call('POST /capabilities', { id: 'every', kind: 'mcp', config })) continue
  t.same([...vault.values], [['every/env', 'TEAM=blue-team-7']])
  t.match(await resultOf(daemon, { server: 'every', name: 'get-env', input: {} }), { ok: true, text: /blue-team-7/ })
  const stop = new AbortController()
  const long = { server: 'every', name: 'trigger-long-running-operation', input: { duration: 60, steps: 60 } }
  const began = Date.now()
  const cut = callTool(daemon, long, () => stop.abort(), stop.signal)
  await cut.catch(() => {})
  t.ok(Date.now() - began < 20_000)
  t.match(await resultOf(daemon, { server: 'every', name: 'echo', input: { message: 'still here' } }), { ok: true })
})
