import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import type { Frame } from '../../../plugins/agent/contract.js'
import { mountsLater } from '../../../sdk/node/wall/later-mounts.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { framesOf, runTurn } from '../../support/turns.js'

const skip = (await mountsLater()) ? false : 'this machine has no bubblewrap'

/** A program with many sessions: each line of a prompt is a command that it runs itself. */
const PROGRAM = `#!${process.execPath}
import { execSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { randomUUID } from 'node:crypto'
const sessions = new Map()
const send = message => void process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const say = (sessionId, text) => send({ method: 'session/update', params: { sessionId,
  update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
let last = 1000
const waiting = new Map()
const prompt = async ({ sessionId, prompt }) => {
  const { cwd } = sessions.get(sessionId)
  const env = { ...process.env, BEARERS: [...sessions.values()].flatMap(({ mcpServers }) =>
    mcpServers.flatMap(({ headers = [] }) => headers.map(({ value }) => value))).join(' ') }
  for (const line of prompt.flatMap(({ text = '' }) => text.split('\\n'))) {
    if (line === 'ask') await new Promise(resolve => {
      waiting.set(++last, resolve)
      send({ id: last, method: 'session/request_permission', params: { sessionId,
        toolCall: { toolCallId: 'x', title: 'x' }, options: [{ optionId: 'y', name: 'Yes', kind: 'allow_once' },
          { optionId: 'n', name: 'No', kind: 'reject_once' }] } })
    })
    if (!line.startsWith('run ')) continue
    try { say(sessionId, execSync(line.slice(4), { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })) }
    catch (error) { say(sessionId, 'ERR ' + error.stdout + error.stderr) }
  }
  return { stopReason: 'end_turn' }
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1,
    agentCapabilities: { loadSession: true, mcpCapabilities: { http: true } } } })
  else if (method === 'session/new') {
    const sessionId = randomUUID()
    sessions.set(sessionId, params)
    send({ id, result: { sessionId } })
  } else if (method === 'session/load') { sessions.set(params.sessionId, params); send({ id, result: {} }) }
  else if (method === 'session/prompt') prompt(params).then(result => send({ id, result }))
  else if (method === undefined) waiting.get(id)?.(result)
}
`

/** Prints every mount that can be written, the variables that name folders, and bearers of tool servers. */
const LOOK = `run echo "MOUNTS"; awk '{print $3, $4, $6, $5}' /proc/self/mountinfo; echo "ENV"; env; echo "END"`
const FOLDERS = '"$HOME" /tmp "$npm_config_cache" "$CARGO_HOME" "$XDG_CACHE_HOME"'
const PLANT = `run for f in ${FOLDERS}; do mkdir -p "$f"; echo planted > "$f/planted"; done`
const FIND = `run find ${FOLDERS} -name planted`

interface Seen {
  /** The writable folders, by device and path on it. */
  readonly writable: readonly string[]
  readonly env: { readonly [name: string]: string }
}

/** File systems that are made anew for each wall have no path above their root; devices hold nothing. */
const seenIn = (text: string): Seen => {
  const [, mounts = '', env = ''] = /MOUNTS\n([^]*?)\nENV\n([^]*?)\nEND/.exec(text) ?? []
  return {
    writable: mounts.split('\n').flatMap(line => {
      const [device, root = '/', options = '', at = ''] = line.split(' ')
      return root !== '/' && !at.startsWith('/dev/') && options.split(',').includes('rw') ? [`${device} ${root}`] : []
    }),
    env: Object.fromEntries(env.split('\n').map(line => line.split(/=(.*)/s).slice(0, 2) as [string, string])),
  }
}

const textIn = (frames: readonly Frame[]): string =>
  frames
    .flatMap(frame => {
      if (frame.kind === 'delta') return [frame.text]
      if (frame.kind !== 'tool_call_update' || frame.status !== 'completed') return []
      return (frame.content ?? []).flatMap(part => (part.type === 'text' ? [part.text] : []))
    })
    .join('')

const world = async (t: Test) => {
  const daemon = await daemonWith(t, ['agent', 'agents', 'system'], {
    fakes: {
      'capabilities.records': () => ({
        capabilities: [{ id: 'many', kind: 'agent', label: 'Many', config: {}, secrets: [] }],
      }),
      'capabilities.runtime': () => ({ id: 'many', label: 'Many', command: ['many'], env: {} }),
    },
  })
  const folder = join(daemon.data, 'homes/programs/many/home')
  mkdirSync(join(folder, '.local/bin'), { recursive: true })
  mkdirSync(join(folder, '.config/many'), { recursive: true })
  writeFileSync(join(folder, '.local/bin/many'), PROGRAM, { mode: 0o755 })
  writeFileSync(join(folder, '.config/many/sign-in'), 'signed in')
  const eve = (await joined(daemon, 'eve', 'collaborator')).client
  const drive = (await daemon.token('drive')).client
  return { ...daemon, owner: daemon.client, eve, drive }
}
type World = Awaited<ReturnType<typeof world>>

const PROVIDERS = { 'the commands of a turn': 'script', 'an agent program': 'agent/many' } as const

/** Runs a turn; commands of the script agent take one dollar sign as two. */
const turn = async (client: Client, id: string, agent: string, prompt: string, options: object = {}): Promise<string> =>
  textIn(
    await runTurn(client, id, agent === 'script' ? prompt.replaceAll('$', '$$$$') : prompt, {
      ...{ agent, isolated: true },
      ...options,
    }),
  )

/** Everybody who may not land, and each way into a turn: what they get to run. */
const WAYS: { readonly [way: string]: (world: World, agent: string, prompt: string) => Promise<string> } = {
  'a collaborator': ({ eve }, agent, prompt) => turn(eve, 'x', agent, prompt),
  'a token of scope drive': ({ drive }, agent, prompt) => turn(drive, 'x', agent, prompt),
  'a wake from outside': ({ owner }, agent, prompt) => turn(owner, 'x', agent, prompt, { outsideWake: 'webhook' }),
  'a wake from outside, told to land': ({ owner }, agent, prompt) =>
    turn(owner, 'x', agent, prompt, { outsideWake: 'webhook', autoLand: true }),
  'the owner in the conversation of a collaborator': async ({ owner, eve }, agent, prompt) => {
    await turn(eve, 'x', agent, 'run true')
    return turn(owner, 'x', agent, prompt, { autoLand: true })
  },
  'a collaborator in the conversation of the owner': async ({ owner, eve }, agent, prompt) => {
    await turn(owner, 'x', agent, 'run true')
    return turn(eve, 'x', agent, prompt)
  },
  'the owner after a wake from outside': async ({ owner }, agent, prompt) => {
    await turn(owner, 'x', agent, 'run true', { outsideWake: 'webhook' })
    return turn(owner, 'x', agent, prompt, { autoLand: true })
  },
  'a fork of the conversation of a collaborator': async ({ owner, eve }, agent, prompt) => {
    await turn(eve, 'y', agent, 'run true')
    return turn(owner, 'x', agent, prompt, { forkOf: { conversationId: 'y', keep: 1, files: 'now' } })
  },
}

const overlap = (one: Seen, other: Seen): string[] =>
  one.writable.filter(path =>
    other.writable.some(each => each === path || each.startsWith(`${path}/`) || path.startsWith(`${each}/`)),
  )

for (const [what, agent] of Object.entries(PROVIDERS)) {
  for (const [way, run] of Object.entries(WAYS)) {
    t.test(`${what}: ${way} shares nothing that can be written with work that lands`, { skip }, async t => {
      const daemon = await world(t)
      const { owner } = daemon
      const lands = { autoLand: true }
      const before = seenIn(await turn(owner, 'b', agent, LOOK, lands))
      const apart = seenIn(await run(daemon, agent, `${LOOK}\n${PLANT}`))
      t.ok(before.writable.length >= 3 && apart.writable.length >= 3, 'both can write somewhere')
      t.same(overlap(before, apart), [], 'before')
      t.same(overlap(seenIn(await turn(owner, 'b', agent, LOOK, lands)), apart), [], 'the same conversation later')
      t.same(overlap(seenIn(await turn(owner, 'n', agent, LOOK, lands)), apart), [], 'a new conversation')
      for (const id of ['b', 'n', 'm']) t.notMatch(await turn(owner, id, agent, FIND, lands), /planted/, id)
      const bearers = ({ env }: Seen) => (env['BEARERS'] ?? '').split(' ').filter(word => word.length > 20)
      t.equal(bearers(apart).length > 0, agent !== 'script', 'a program has one')
      t.same(
        bearers(apart).filter(bearer => bearers(before).includes(bearer)),
        [],
        'no bearer of a tool server is in both',
      )
    })
  }
}

t.test(
  'a program of a collaborator begins with the sign-ins of the connection, and again when they change',
  { skip },
  async t => {
    const daemon = await world(t)
    const { eve, owner, data } = daemon
    const file = join(data, 'homes/programs/many/home/.config/many/sign-in')
    const READ = 'run cat "$HOME/.config/many/sign-in"'
    t.equal(await turn(eve, 'x', 'agent/many', READ), 'signed in')
    await turn(eve, 'x', 'agent/many', 'run echo mine > "$HOME/.config/many/sign-in"')
    t.equal(await turn(owner, 'b', 'agent/many', READ), 'signed in', 'what it writes there is its own')
    writeFileSync(file, 'signed in anew')
    t.equal(await turn(eve, 'x', 'agent/many', READ), 'signed in anew')
  },
)

t.test('a program in a shared home gets no words or answers from people who may not land', { skip }, async t => {
  const { owner, eve, drive } = await world(t)
  const agent = 'agent/many'
  const { run } = await owner.call('POST /agent', {
    ...{
      conversationId: 'b',
      agent,
      isolated: true,
      autoLand: true,
      prompt: 'ask\nrun echo over',
      permissionMode: 'default',
    },
  })
  const watched = framesOf(owner, 'b', { run })
  const { requestId } = await watched.until(({ kind }) => kind === 'permission')
  for (const [who, client] of Object.entries({ eve, drive })) {
    t.match(
      await refusalOf(() => client.call('POST /agent/steer', { conversationId: 'b', text: 'run echo evil' })),
      { status: 409 },
      who,
    )
    t.match(
      await refusalOf(() => client.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'once' })),
      { status: 409, message: /only of people who may land/ },
      who,
    )
    t.match(
      await client.call('POST /agent', { conversationId: 'b', prompt: `run echo evil of ${who}` }),
      { delivery: 'queued' },
      who,
    )
  }
  await owner.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'once' })
  const said = textIn((await watched.all()).map(({ event }) => event))
  t.match(said, /over/)
  t.notMatch(said, /evil/)
})

t.test('commands that start after the words of a collaborator run apart', { skip }, async t => {
  const { owner, eve } = await world(t)
  const look = LOOK.replaceAll('$', '$$$$')
  const { run } = await owner.call('POST /agent', {
    ...{ conversationId: 'b', agent: 'script', isolated: true, autoLand: true },
    prompt: `${look}\nask Go on?\n| yes: on\nwait words 60000\n${look}`,
  })
  const watched = framesOf(owner, 'b', { run })
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  const before = seenIn(textIn(watched.seen.map(({ event }) => event)))
  await owner.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
  await eve.call('POST /agent', { conversationId: 'b', prompt: 'theirs' })
  const all = textIn((await watched.all()).map(({ event }) => event))
  const after = seenIn(all.slice(all.indexOf('END') + 3))
  t.ok(after.writable.length >= 3)
  const homes = (seen: Seen) => ['HOME', 'npm_config_cache', 'CARGO_HOME'].map(name => seen.env[name])
  for (const [at, home] of homes(after).entries()) t.not(home, homes(before)[at])
})
