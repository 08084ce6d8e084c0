/** A program that starts its tool servers itself: it lists the tools, calls one, and reports the result. */
export const STARTER = `
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const say = text => send({ method: 'session/update', params: { sessionId: 's-1', update:
  { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
let tools
const waiting = new Map()
const ask = (method, params) => new Promise(resolve => {
  const id = waiting.size + 1
  waiting.set(id, resolve)
  tools.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\\n')
})
const start = ({ command, args, env }) => {
  const given = Object.fromEntries(env.map(({ name, value }) => [name, value]))
  tools = spawn(command, args, { env: { ...process.env, ...given } })
  createInterface({ input: tools.stdout }).on('line', line => {
    const message = JSON.parse(line)
    waiting.get(message.id)?.(message.result ?? message.error)
  })
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') {
    start(params.mcpServers[0])
    send({ id, result: { sessionId: 's-1' } })
  } else if (method === 'session/prompt') {
    const clientInfo = { name: 'starter', version: '1' }
    await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
    const { tools: list } = await ask('tools/list', {})
    say(list.map(({ name }) => name).sort().join(' '))
    const items = [{ content: 'write it', status: 'pending' }]
    const { isError, content } = await ask('tools/call', { name: 'Todo', arguments: { items } })
    say('; ' + (isError === true) + ' ' + content[0].type)
    send({ id, result: { stopReason: 'end_turn' } })
  }
}
`
