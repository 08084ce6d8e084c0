import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { UsageTurn } from '../../plugins/usage/contract.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { crashSeed, EVERY_CASE } from '../support/lists.js'
import { modelServer, type SeenMessage } from '../support/servers/model-server.js'
import { Dice } from './random/dice.js'
import { AGENT_FLOORS, tooFew } from './random/floors.js'

const seed = crashSeed()
/** A quarter of those of the mixed load. */
const kills = Math.ceil(Number(process.env['SANDBOX_CRASH_KILLS'] ?? (EVERY_CASE ? 30 : 16)) / 4)
const again = `SANDBOX_CRASH_SEED=${seed} SANDBOX_CRASH_KILLS=${kills * 4} repeats it`

/** A tool server whose one tool adds a line to a file in the folder of its conversation. */
const SERVER = `
const { appendFileSync } = require('node:fs')
const say = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  const answer = result => say({ id, result })
  if (method === 'initialize') {
    const { protocolVersion } = params
    return answer({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } })
  }
  if (method === 'ping') return answer({})
  const inputSchema = { type: 'object', properties: { text: { type: 'string' } } }
  if (method === 'tools/list') return answer({ tools: [{ name: 'note', description: 'notes', inputSchema }] })
  if (method !== 'tools/call') return
  appendFileSync('server.txt', params.arguments.text + '\\n')
  answer({ content: [{ type: 'text', text: 'noted' }] })
})
`

/** An agent program: fresh words are three lines in a file; told to go on, it adds only what is missing there. */
const PROGRAM = `
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const update = update => send({ method: 'session/update', params: { sessionId: 's-1', update } })
const work = async (id, prompt) => {
  const fresh = prompt.find(({ type, annotations }) => type === 'text' && !annotations)
  const nth = /turn (\\d+)/.exec((fresh ?? prompt.findLast(({ text }) => /^turn \\d+$/.test(text ?? ''))).text)[1]
  if (fresh) appendFileSync('fresh.txt', nth + '\\n')
  const done = existsSync('program.txt') ? readFileSync('program.txt', 'utf8').split('\\n') : []
  for (const step of [1, 2, 3]) {
    const line = nth + '.' + step
    if (done.includes(line)) continue
    update({ sessionUpdate: 'tool_call', toolCallId: line, title: 'add ' + line, kind: 'edit', status: 'in_progress' })
    appendFileSync('program.txt', line + '\\n')
    await delay(40)
    update({ sessionUpdate: 'tool_call_update', toolCallId: line, status: 'completed' })
  }
  send({ id, result: { stopReason: 'end_turn', usage: { inputTokens: 70, outputTokens: 7, totalTokens: 77 } } })
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/prompt') void work(id, params.prompt)
}
`

const NATIVE = 'native'
const VENDOR = 'program'
const STEPS = 4
const PRICE = { input: 100, output: 10 }

interface Sent {
  readonly id: string
  readonly nth: number
}

/** What a request to the model asks for: the newest words, and how many results of tools followed them. */
const askedOf = (messages: readonly SeenMessage[]): { nth: string; step: number } => {
  const said = messages.map(({ role, content }) => ({ role, text: JSON.stringify(content) }))
  const at = said.findLastIndex(({ role, text }) => role === 'user' && /turn \d+/.test(text))
  return {
    nth: /turn (\d+)/.exec(said[at]?.text ?? '')?.[1] ?? '',
    step: said.slice(at).filter(({ role }) => role === 'tool').length,
  }
}

const linesOf = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []

/** Every line of the ledger, as it lies on the disk. */
const ledgerIn = (data: string): UsageTurn[] =>
  globSync('journals/usage/ledger/*', { cwd: data })
    .flatMap(name => linesOf(join(data, name)))
    .flatMap(line => {
      const at = line.indexOf('{')
      try {
        const entry = JSON.parse(line.slice(at)) as UsageTurn & { entry?: UsageTurn }
        return entry.provider === undefined ? [] : [entry]
      } catch {
        return []
      }
    })

t.setTimeout(600_000)

t.test(`killed at random moments, turns of agents repeat no tool call and count tokens once (${again})`, async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, {
    '.sandbox/config/settings.json': '{"autoResumeOnRestart":true}\n',
    'server.cjs': SERVER,
    'agent.mjs': PROGRAM,
  })
  const dice = new Dice(seed)
  let asked = 0
  const server = await modelServer(t, 'openai', ({ text, body }) => {
    if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
    const { nth, step } = askedOf(body.messages ?? [])
    asked += 1
    const tools = (body.tools ?? []) as { function: { name: string } }[]
    const note = tools.find(({ function: { name } }) => name.endsWith('note'))?.function.name ?? 'none'
    const id = `call-${nth}-${step}`
    const calls = [
      { id, name: 'Append', input: { path: 'native.txt', content: `${nth}.1\n` } },
      { id, name: note, input: { text: `${nth}.2` } },
      { id, name: 'Shell', input: { command: `echo ${nth}.3 >> native.txt` } },
    ].slice(step, step + 1)
    return { text: [...`Step ${step} of ${nth}.`], everyMs: 3, calls, usage: PRICE }
  })
  const counts: { [name: string]: number } = {}
  const count = (name: string, by = 1) => (counts[name] = (counts[name] ?? 0) + by)
  const sent: Sent[] = []
  const send = async ({ once: client }: RunningDaemon, { id, nth }: Sent): Promise<void> => {
    await client.call('POST /agent', {
      conversationId: id,
      messageId: `${id}-${nth}`,
      prompt: `turn ${nth}`,
      agent: id === NATIVE ? 'endpoint/local' : 'agent/program',
      isolated: true,
      permissionMode: 'bypassPermissions',
    })
  }
  /** Starts what waits behind a turn that a second kill interrupted for good; answers how many wait. */
  const goOn = async ({ once: client }: RunningDaemon, id: string): Promise<number> => {
    const { messages, paused } = await client.call('GET /agents/{id}/queue', { id })
    const messageIds = messages.map(({ messageId }) => messageId)
    if (paused && messageIds.length > 0)
      await client.call('POST /agents/{id}/queue/order', { id, messageIds, start: true })
    return messageIds.length
  }
  /** Waits until nothing runs and nothing waits. */
  const idle = async (daemon: RunningDaemon): Promise<void> => {
    for (let waiting = 1, busy = true; waiting > 0 || busy; await delay(100)) {
      waiting = (await Promise.all([NATIVE, VENDOR].map(id => goOn(daemon, id)))).reduce((one, other) => one + other)
      const { agents } = await daemon.client.call('GET /agents')
      busy = agents.some(({ status }) => ['running', 'awaiting', 'stopping', 'resuming'].includes(status))
    }
  }
  /** One turn runs and one waits, in both conversations. */
  const feed = async (daemon: RunningDaemon): Promise<void> => {
    for (const id of [NATIVE, VENDOR]) {
      const mine = sent.filter(message => message.id === id)
      const last = mine.at(-1)
      // It may have been cut off before it was accepted.
      if (last) await send(daemon, last)
      if (last && (await goOn(daemon, id)) > 0) continue
      const next: Sent = { id, nth: mine.length + 1 }
      sent.push(next)
      await send(daemon, next)
      count('sent')
    }
  }

  const first = await spawnDaemon(t, where)
  const { baseUrl } = server.target()
  await first.client.call('POST /endpoints', { id: 'local', kind: 'server', protocol: 'openai', baseUrl })
  const node = process.execPath
  for (const capability of [
    {
      id: 'notes',
      kind: 'mcp' as const,
      config: {
        transport: 'stdio' as const,
        command: node,
        args: join(where.workspace, 'server.cjs'),
        approve: 'never' as const,
      },
    },
    { id: 'program', kind: 'agent' as const, config: { command: `${node} agent.mjs` } },
  ])
    for await (const step of await first.client.call('POST /capabilities', capability)) void step
  let daemon = first
  for (let killed = 0; killed < kills; killed++) {
    const fed = feed(daemon).catch(() => {})
    if (dice.chance(0.7)) await fed
    // Turns that were killed come to their end too, however slow the machine is.
    if (killed % 6 === 5) await fed.then(() => idle(daemon))
    else await delay(dice.below(dice.chance(0.4) ? 3000 : 800))
    await daemon.kill9()
    await fed
    daemon = await spawnDaemon(t, where)
  }
  for (const id of [NATIVE, VENDOR])
    await send(
      daemon,
      sent.findLast(message => message.id === id)!,
    )
  await idle(daemon)
  await daemon.terminate()

  const faults: string[] = []
  const lines = ledgerIn(where.data)
  const copy = (id: string, file: string) => linesOf(join(where.data, 'agent/checkouts', id, file))
  const effects = [...copy(NATIVE, 'native.txt'), ...copy(NATIVE, 'server.txt')]
  for (const [name, all] of Object.entries({
    effects,
    program: copy(VENDOR, 'program.txt'),
    fresh: copy(VENDOR, 'fresh.txt'),
  }))
    for (const line of new Set(all)) {
      const times = all.filter(each => each === line).length
      if (times > 1) faults.push(`${name}: ${line} was done ${times} times`)
    }
  const runs = new Set(lines.map(({ run }) => run))
  if (runs.size < lines.length) faults.push(`${lines.length} lines of the ledger are of ${runs.size} runs`)
  const wholeOf = (id: string) => lines.filter(line => line.conversationId === id && line.outcome === 'ok')
  // A request whose answer came whole is asked again where the kill came before it was stored: it was paid for twice.
  for (const line of wholeOf(NATIVE))
    if (line.inputTokens < STEPS * PRICE.input || line.outputTokens !== (line.inputTokens / PRICE.input) * PRICE.output)
      faults.push(`${line.run} counted ${line.inputTokens} and ${line.outputTokens} tokens`)
  const counted = lines.reduce((sum, line) => sum + (line.conversationId === NATIVE ? line.inputTokens : 0), 0)
  if (counted > asked * PRICE.input) faults.push(`${counted} tokens are counted for ${asked} requests`)
  for (const line of wholeOf(VENDOR))
    if (line.inputTokens !== 70 || line.outputTokens !== 7)
      faults.push(`${line.run} counted ${line.inputTokens} and ${line.outputTokens} tokens`)
  const steps: { readonly [id: string]: readonly string[] } = {
    [NATIVE]: effects,
    [VENDOR]: copy(VENDOR, 'program.txt'),
  }
  for (const [id, done] of Object.entries(steps)) {
    const whole = sent.filter(({ id: own, nth }) => own === id && [1, 2, 3].every(at => done.includes(`${nth}.${at}`)))
    if (whole.length < wholeOf(id).length)
      faults.push(`${id}: ${wholeOf(id).length} turns are completed, and the work of ${whole.length} is there`)
  }
  count('native turns', wholeOf(NATIVE).length)
  count('program turns', wholeOf(VENDOR).length)
  count('server calls', copy(NATIVE, 'server.txt').length)
  t.comment(JSON.stringify({ kills, ...counts }))
  t.same(faults, [], 'nothing is done twice, left out or counted wrongly')
  t.same(tooFew(counts, kills * 4, AGENT_FLOORS), [])
})
