import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { root } from '../../support/daemon.js'

t.test('sandbox script-agent speaks the Agent Client Protocol, and ends with its client', async t => {
  const child = spawn(process.execPath, [join(root, 'bundle', 'sdk', 'cli.js'), 'script-agent'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill())
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]()
  const ask = async (
    id: number,
    method: string,
    params: object,
  ): Promise<{ result?: unknown; error?: { code: number } }> => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    for (;;) {
      const message = JSON.parse(String((await answers.next()).value)) as {
        id?: number
        result?: unknown
        error?: { code: number }
      }
      if (message.id === id) return message
    }
  }
  t.match(
    await ask(1, 'session/new', { cwd: '/', mcpServers: [] }),
    { error: { code: -32600 } },
    'other calls before initialize are refused',
  )
  t.match(await ask(2, 'initialize', { protocolVersion: 1, clientCapabilities: {} }), {
    result: { protocolVersion: 1, agentCapabilities: { loadSession: true } },
  })
  t.match(await ask(3, 'session/new', { cwd: 'here', mcpServers: [] }), { error: { code: -32602 } })
  t.match(await ask(4, 'session/load', { cwd: '/', mcpServers: [], sessionId: '../x' }), { error: { code: -32002 } })
  t.match(await ask(5, 'session/load', { cwd: '/', mcpServers: [], sessionId: 'script-1' }), {
    result: { modes: { currentModeId: 'default' } },
  })
  t.match(await ask(6, 'session/prompt', { sessionId: 'script-1', prompt: [{ type: 'text', text: 'say hello' }] }), {
    result: { stopReason: 'end_turn' },
  })
  t.match(
    await ask(7, 'session/prompt', { sessionId: 'script-1', prompt: [{ type: 'text', text: 'fail so be it' }] }),
    { error: { message: 'so be it' } },
  )
  child.stdin.end()
  t.same(await once(child, 'exit'), [0, null])
})
