import { once } from 'node:events'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { ApplyFrame } from '../../../../plugins/capabilities/contract.js'
import { daemonWith } from '../../../support/daemon.js'
import { modelServer, type ScriptedReply } from '../../../support/servers/model-server.js'
import { framesOf, runTurn } from '../../../support/turns.js'

/** A request to a chat-completions server. */
interface Asked {
  readonly messages: readonly { readonly role: string }[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

const SERVER = join(process.cwd(), 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js')
const skip = existsSync(SERVER) ? false : 'the server is not installed'

t.test('a real tool server runs in the private copy of the turn that uses it', { skip }, async t => {
  const server = await modelServer(t, 'openai', ({ text }): ScriptedReply => {
    if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
    const { tools = [], messages } = JSON.parse(text) as Asked
    const write = tools.map(tool => tool.function.name).find(name => name.includes('write_file'))
    return messages.at(-1)?.role === 'tool'
      ? { text: ['Done.'] }
      : { calls: [{ name: write ?? 'none', input: { path: 'made.txt', content: 'by the server' } }] }
  })
  const { client, data, workspace } = await daemonWith(t, ['agent', 'agents', 'capabilities', 'endpoints'])
  const frames: ApplyFrame[] = []
  for await (const frame of await client.call('POST /capabilities', {
    id: 'files',
    kind: 'mcp',
    config: { transport: 'stdio', command: process.execPath, args: `${SERVER}\n${workspace}` },
  }))
    frames.push(frame)
  t.match(frames.at(-1), { kind: 'result', ok: true })
  const { baseUrl } = server.target()
  await client.call('POST /endpoints', { id: 'local', kind: 'server', protocol: 'openai', baseUrl })
  const turn = async (conversationId: string, input: object = {}) => {
    await client.call('POST /agent', {
      conversationId,
      agent: 'endpoint/local',
      model: 'm',
      isolated: true,
      prompt: 'write',
      ...input,
    })
    return (await framesOf(client, conversationId).all()).map(({ event }) => event)
  }
  const seen = await turn('c')
  t.match(seen.at(-1), { kind: 'done', reason: 'completed' })
  t.ok(existsSync(join(data, 'agent/checkouts/c/made.txt')), 'it wrote into the copy')
  t.notOk(existsSync(join(workspace, 'made.txt')), 'it did not write into the workspace')
  const planned = await turn('p', { permissionMode: 'plan' })
  t.match(JSON.stringify(planned), /plan mode/, 'calls that change something wait for the plan')
  t.notOk(existsSync(join(data, 'agent/checkouts/p/made.txt')))
})

t.test('the token of a tool reaches a service from the shell of a turn, and is written nowhere', async t => {
  const token = 'tracker-token-of-ada-0815'
  const seen: (string | undefined)[] = []
  const service = createServer(({ headers }, response) => {
    seen.push(headers.authorization)
    response.end(`hello ${headers.authorization}`)
  }).listen(0, '127.0.0.1')
  t.teardown(() => void service.close())
  await once(service, 'listening')
  const { port } = service.address() as AddressInfo
  const daemon = await daemonWith(t, ['agent', 'agents', 'capabilities', 'personas', 'secrets', 'settings', 'skills'])
  const { client, data, workspace } = daemon
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /settings', { networkAllow: [`localhost:${port}`] })
  const config = { provider: 'token', name: 'TRACKER', token }
  for await (const _ of await client.call('POST /capabilities', { id: 'ada', kind: 'cli', config }));
  const ask = `run curl -s -H "authorization: Bearer \${TRACKER_ADA-none}" http://localhost:${port}/`
  const mode = { permissionMode: 'bypassPermissions' } as const
  const frames = await runTurn(client, 'with', ask, mode)
  t.same(seen, [`Bearer ${token}`])
  t.match(JSON.stringify(frames), /hello Bearer \{\{secret:ada\/token\}\}/, 'its answer shows the reference')
  await client.call('POST /personas', { id: 'poet', capabilities: [], powers: { connectors: [] } })
  await runTurn(client, 'without', ask, { ...mode, actsAs: 'poet' })
  t.same(seen.slice(1), ['Bearer none'], 'a persona without the connection has no variable')
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'with' })
  const list = await client.call('GET /capabilities')
  const files = [data, workspace]
    .flatMap(folder => globSync(join(folder, '**/{.*,*}')))
    .filter(path => statSync(path, { throwIfNoEntry: false })?.isFile())
    .map(path => readFileSync(path, 'latin1'))
  t.ok(files.length > 10)
  t.notMatch([JSON.stringify([frames, messages, list]), ...files, ...daemon.logged].join('\n'), token)
})
