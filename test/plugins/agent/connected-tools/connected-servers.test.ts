import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ApplyFrame } from '../../../../plugins/capabilities/contract.js'
import { daemonWith } from '../../../support/daemon.js'
import { modelServer, type ScriptedReply } from '../../../support/servers/model-server.js'
import { framesOf } from '../../../support/turns.js'

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
