import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Capability } from '../../plugins/capabilities/contract.js'
import type { Client } from '../../sdk/client.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { contentOf, filesIn, formsOf } from '../support/secret-search.js'
import { modelServer } from '../support/servers/model-server.js'
import { framesOf, runTurn } from '../support/turns.js'
import { realServer } from '../plugins/capabilities/servers-support.js'
import { packed } from '../plugins/system/bundles/bundles-support.js'
import { walled } from './support.js'

/** One value for each way to give the sandbox a secret. */
const PLANTED = {
  stored: 'planted-stored/9f3b+2ac7=18d0',
  bound: 'planted-bound/77aa+01c2=5e9d',
  program: 'planted-program/4d1e+88b0=c3f6',
  server: 'planted-server/e20f+6b9a=7d54',
  model: 'planted-model-3c5d8e1f0a9b',
}
type Place = readonly [name: string, text: string]

/** A program that prints its secret in every way: as text, as a command, and in an error message. */
const LEAKING = `
import { createInterface } from 'node:readline'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const update = update => send({ method: 'session/update', params: { sessionId: 's-1', update } })
const secret = process.env.KEY
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/prompt') {
    process.stderr.write('failed with ' + secret + '\\n')
    for (const piece of secret.match(/.{1,5}/g))
      update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: piece } })
    update({ sessionUpdate: 'tool_call', toolCallId: 't', title: 'login ' + secret, kind: 'execute',
      status: 'completed', rawInput: { command: 'login ' + secret },
      rawOutput: { output: Buffer.from(secret).toString('base64') } })
    send({ id, error: { code: -32603, message: 'refused: ' + encodeURIComponent(secret) } })
  }
}
`

const everything = (folder: string): string =>
  filesIn(folder)
    .map(path => contentOf(path).toString('latin1'))
    .join('\n')

/** Collects the arguments of every process of the machine until the returned function is called. */
const watchArguments = (): (() => string) => {
  const seen = new Set<string>()
  const look = () => {
    for (const pid of readdirSync('/proc')) {
      if (!/^\d+$/.test(pid)) continue
      try {
        seen.add(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      } catch {
        // The process has ended meanwhile.
      }
    }
  }
  const timer = setInterval(look, 10)
  return () => {
    clearInterval(timer)
    return [...seen].join('\n')
  }
}

const connect = async (client: Client, capability: Capability): Promise<void> => {
  for await (const frame of await client.call('POST /capabilities', capability))
    if (frame.kind === 'result' && !frame.ok) throw new Error(JSON.stringify(frame))
}

t.test(
  'after turns of every harness no planted secret is readable anywhere except where it is used',
  walled(),
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace, { 'agent.mjs': LEAKING })
    const model = await modelServer(t, 'openai', ({ path, text }, nth) => {
      if (path.endsWith('/models')) return { status: 200, body: '{"data":[{"id":"m"}]}' }
      const tool = /"name":"([^"]*get-env)"/.exec(text)?.[1]
      if (nth < 4 && tool && !text.includes('"role":"tool"')) return { calls: [{ name: tool, input: {} }] }
      if (!text.includes('fail now')) return { text: ['it was ', PLANTED.server.slice(0, 9), PLANTED.server.slice(9)] }
      return { status: 401, body: `{"error":{"message":"wrong key ${PLANTED.model}"}}` }
    })
    const daemon = await spawnDaemon(t, { workspace, data })
    const { client } = daemon
    const args = watchArguments()
    await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await client.call('POST /secrets', { key: 'STORED', value: PLANTED.stored })
    await client.call('POST /secrets', { key: 'BOUND', value: PLANTED.bound, hosts: ['api.example'] })
    const { baseUrl } = model.target()
    const server = { id: 'local', kind: 'server', protocol: 'openai', baseUrl, apiKey: PLANTED.model } as const
    await client.call('POST /endpoints', server)
    const command = `${process.execPath} ${realServer('everything')} stdio`
    await connect(client, {
      id: 'every',
      kind: 'mcp',
      config: { transport: 'stdio', command, env: `T=${PLANTED.server}` },
    })
    const program = { command: `${process.execPath} ${join(workspace, 'agent.mjs')}`, env: `KEY=${PLANTED.program}` }
    await connect(client, { id: 'leaking', kind: 'agent', config: program })

    const asked = [
      'run echo {{secret:STORED}}; echo {{secret:STORED}} | base64; printf %s {{secret:BOUND}}; sh -c "exit 3"',
      'run curl -sS -m 3 -H "x-key: {{secret:BOUND}}" https://api.example/; test {{secret:STORED}} = x',
      `say ${PLANTED.stored}`,
    ].join('\n')
    const frames = [
      await runTurn(client, 'script', asked, { agent: 'script', isolated: true }),
      await runTurn(client, 'vendor', asked, { agent: 'script', harness: 'vendor-code', isolated: true }),
      await runTurn(client, 'native', 'say what is there', { agent: 'endpoint/local' }),
      await runTurn(client, 'native', 'fail now', { agent: 'endpoint/local' }),
      await runTurn(client, 'program', 'go', { agent: 'agent/leaking', isolated: true }),
    ]
    const errors: string[] = []
    for (const refused of [
      () => client.call('POST /endpoints', { ...server, id: 'bad', baseUrl: 'ftp://x' }),
      () => client.call('POST /secrets', { key: 'not a key', value: PLANTED.stored }),
      () => runTurn(client, 'gone', asked, { agent: 'agent/gone' }),
    ])
      await refused().then(
        () => t.fail('it was not refused'),
        (error: unknown) => errors.push(JSON.stringify(error), String(error)),
      )
    const shown = await Promise.all([
      ...['script', 'vendor', 'native', 'program'].map(id => client.call('GET /agents/{id}/transcript', { id })),
      client.call('GET /activity', { limit: 500 }),
      client.call('GET /capabilities'),
      client.call('GET /endpoints'),
      client.call('GET /secrets/uses', {}),
      framesOf(client, 'program').all(),
    ])
    t.equal((await packed(t, daemon)).state, 'ready')
    const said = JSON.stringify(frames)
    const places: Place[] = [
      ['the arguments of programs', args()],
      ['frames', said],
      ['answers', JSON.stringify(shown)],
      ['errors', errors.join('\n')],
      ['the output of the daemon', daemon.stderr()],
      ['what the model was told', model.requests.map(({ text }) => text).join('\n')],
    ]
    t.equal(await daemon.terminate(), 0)
    const stored = everything(data)
    t.match(stored, /ustar[^]*get-env/, 'the backup is read')
    places.push(['the data folder and the backup in it', stored], ['the workspace', everything(workspace)])
    for (const name of ['STORED', 'every/env', 'leaking/env'])
      t.ok(said.includes(`{{secret:${name}}}`), `${name} can be found`)
    for (const [place, text] of places)
      for (const [name, value] of Object.entries(PLANTED))
        t.strictSame(
          formsOf(value).filter(form => text.includes(form)),
          [],
          `${name} in ${place}`,
        )
  },
)
