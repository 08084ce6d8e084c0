import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { add } from '../../plugins/capabilities/support.js'
import { runLoop } from '../../plugins/loops/support.js'
import { exactly } from '../../support/lists.js'
import { modelServer, type ScriptedReply } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'
import { answersOf, walled } from '../support.js'
import { USERS } from '../users.js'
import { ATTACKS, limited } from './limits-attack.js'

/** A tool server whose one tool runs a command and answers what that said. */
const SERVER = `
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
const tools = [{ name: 'hit', inputSchema: { type: 'object', properties: { command: { type: 'string' } } } }]
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const answer = result => id !== undefined && console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
  const serverInfo = { name: 's', version: '1' }
  if (method === 'initialize')
    answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo })
  else if (method === 'tools/list') answer({ tools })
  else if (method === 'tools/call') {
    let said = ''
    const child = spawn('sh', ['-c', params.arguments.command], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.on('data', piece => (said += piece))
    child.on('close', () => answer({ content: [{ type: 'text', text: 'said ' + said }] }))
  } else answer({})
})
`
/** Two, because a server that ends three times is not started again. */
const TOO_MUCH = ['many memory hogs', 'a fork bomb']

t.setTimeout(300_000)

for (const [user, uid] of USERS)
  t.test(`${user}: what the tool servers and checks of a turn use counts as its own`, walled(), async t => {
    let command = ''
    const model = await modelServer(t, 'openai', ({ text }): ScriptedReply => {
      if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
      const { tools = [], messages } = JSON.parse(text) as {
        tools?: { function: { name: string } }[]
        messages: { role: string }[]
      }
      const hit = tools.map(tool => tool.function.name).find(name => name.endsWith('hit'))
      return messages.at(-1)?.role === 'tool' || !hit
        ? { text: ['over'] }
        : { calls: [{ name: hit, input: { command } }] }
    })
    const { client, workspace } = await limited(t, uid === process.getuid?.() ? {} : { user: uid })
    const server = join(workspace, 'server.mjs')
    writeFileSync(server, SERVER)
    chmodSync(server, 0o644)
    await client.call('POST /endpoints', {
      id: 'e',
      kind: 'server',
      protocol: 'openai',
      baseUrl: model.target().baseUrl,
    })
    const config = { transport: 'stdio', command: process.execPath, args: server } as const
    t.match((await add({ client }, { id: 's', kind: 'mcp', config })).at(-1), { kind: 'result' })
    const turn = async () => {
      await client.call('POST /agent', {
        ...{ conversationId: 'uses', agent: 'endpoint/e', model: 'm' },
        ...{ prompt: 'go', permissionMode: 'bypassPermissions' },
      })
      return (await framesOf(client, 'uses').all()).map(({ event }) => event)
    }
    command = 'echo fine'
    t.match(answersOf(await turn()), exactly({ ok: true, text: 'said fine' }))
    for (const name of TOO_MUCH) {
      command = ATTACKS[name]!.command
      const began = performance.now()
      const frames = await turn()
      t.match(
        frames.filter(({ kind }) => kind === 'error'),
        exactly({ message: ATTACKS[name]!.says }),
        `${name} of a tool server`,
      )
      t.match(frames.at(-1), { kind: 'done', reason: 'failed' })
      t.ok(performance.now() - began < 50_000, 'before its own end')
    }
    command = 'echo fine again'
    t.match(answersOf(await turn()), exactly({ ok: true, text: 'said fine again' }), 'and the next turn works')

    const { iterations } = await runLoop({ client }, 'checked', {
      checks: [{ kind: 'command', command: ATTACKS['many memory hogs']!.command }],
      maxIterations: 1,
    })
    t.match(
      iterations[0]?.checks,
      exactly({ ok: false, detail: ATTACKS['many memory hogs']!.says }),
      'a check of a loop is counted as well',
    )
  })
