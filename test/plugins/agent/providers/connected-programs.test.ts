import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { wallKind } from '../../../../sdk/node/wall/wall.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf } from '../../../support/turns.js'

/** A program that never asks: it writes files itself, and reports the results. */
const WRITER = `
import { createInterface } from 'node:readline'
import { readFileSync, writeFileSync } from 'node:fs'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const say = text => send({ method: 'session/update', params: { sessionId: 's-1', update:
  { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
const attempt = work => { try { return String(work()) } catch (error) { return error.code } }
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize')
    send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } })
  else if (method === 'session/new') send({ id, result: { sessionId: 's-1' } })
  else if (method === 'session/load') send({ id, result: {} })
  else if (method === 'session/prompt') {
    say('wrote ' + attempt(() => writeFileSync('made.txt', 'by itself') ?? 'it'))
    const history = readFileSync('.git', 'utf8').slice(8).trim()
    say(', history ' + attempt(() => writeFileSync(history + '/made', 'x') ?? 'it'))
    say(', home ' + attempt(() => writeFileSync(process.env.HOME + '/kept.txt', 'kept') ?? 'it'))
    say(', secret ' + process.env.KEY)
    send({ method: 'session/update', params: { sessionId: 's-1', update:
      { sessionUpdate: 'session_info_update', title: 'Write a file' } } })
    send({ id, result: { stopReason: 'end_turn' } })
  }
}
`

const world = async (t: Test, command = [process.execPath, 'agent.mjs'], connected = ['writer']) => {
  const { client, data } = await daemonWith(t, ['agent', 'agents'], {
    files: { 'agent.mjs': WRITER },
    fakes: {
      'capabilities.records': () => ({
        capabilities: connected.map(id => ({ id, kind: 'agent', label: 'Writer', config: {}, secrets: [] })),
      }),
      'capabilities.runtime': ({ id }) => ({
        id,
        label: 'Writer',
        command,
        env: { KEY: 'k-1' },
      }),
    },
  })
  const turn = async (conversationId: string, input: object = {}, approve?: boolean): Promise<Frame[]> => {
    await client.call('POST /agent', {
      conversationId,
      agent: 'agent/writer',
      isolated: true,
      prompt: 'write',
      ...input,
    })
    const watched = framesOf(client, conversationId)
    if (approve !== undefined) {
      const card = (await watched.until(({ kind }) => kind === 'plan')) as unknown as { requestId: string }
      await client.call('POST /agent/reply', { kind: 'plan', requestId: card.requestId, approve })
    }
    return (await watched.all()).map(({ event }) => event)
  }
  return { client, turn, data, copy: (id: string) => join(data, 'agent/checkouts', id) }
}

const saidIn = (frames: readonly Frame[]): string =>
  frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')

const skip = (await wallKind()) === 'none' ? 'this machine has no wall' : false

t.test('files that a connected program writes in its copy land like any other work', { skip }, async t => {
  const { turn, client, data, copy } = await world(t)
  const frames = await turn('c')
  t.equal(saidIn(frames), 'wrote it, history it, home it, secret k-1')
  t.equal(readFileSync(join(copy('c'), 'made.txt'), 'utf8'), 'by itself')
  t.match(JSON.stringify(await client.call('GET /agents/{id}/diff', { id: 'c' })), /"made.txt"/)
  const shown = frames.filter(({ kind }) => kind === 'tool_call')
  t.match(
    shown,
    exactly({
      name: 'Write',
      status: 'completed',
      target: 'made.txt',
      content: exactly({ type: 'diff', path: 'made.txt', newText: 'by itself', oldText: undefined }),
    }),
    'an unannounced file is shown',
  )
  t.equal(readFileSync(join(data, 'homes/programs/writer/home/kept.txt'), 'utf8'), 'kept', 'its home is kept')
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { provider: 'agent/writer', unenforced: undefined },
    'only the mode without permissions was requested',
  )
})

t.test('a conversation has the name that its program gives it, until a person names it', async t => {
  const { client, turn } = await world(t)
  const name = async () => (await client.call('GET /agents')).agents[0]!.title
  await turn('named')
  t.equal(await name(), 'Write a file')
  await client.call('POST /agents/{id}/rename', { id: 'named', title: 'My own' })
  await turn('named')
  t.equal(await name(), 'My own')
})

t.test('mode default cannot be enforced on a program that never asks, and the turn says so', { skip }, async t => {
  const { turn, client } = await world(t)
  t.match(
    (await turn('c', { permissionMode: 'default' })).find(({ kind }) => kind === 'init'),
    { unenforced: exactly('mode') },
  )
  t.match(await client.call('GET /agents/{id}', { id: 'c' }), { unenforced: exactly('mode') })
})

t.test('in plan mode and in a read-only turn a program cannot change anything', { skip }, async t => {
  const { turn, copy } = await world(t)
  const read = await turn('r', { allowedTools: ['Read'] })
  t.equal(saidIn(read), 'wrote EROFS, history EROFS, home it, secret k-1')
  t.match(
    read.find(({ kind }) => kind === 'init'),
    { unenforced: exactly('tools') },
  )
  t.notOk(existsSync(join(copy('r'), 'made.txt')))
  t.match(saidIn(await turn('no', { permissionMode: 'plan' }, false)), /wrote EROFS.*not approved/)
  t.notOk(existsSync(join(copy('no'), 'made.txt')))
  t.match(saidIn(await turn('yes', { permissionMode: 'plan' }, true)), /wrote EROFS.*wrote it/)
  t.ok(existsSync(join(copy('yes'), 'made.txt')), 'after the approval it may write')
})

t.test('a program that was installed into its home folder is found there', { skip }, async t => {
  const { turn, data } = await world(t, ['writer-of-its-own'])
  const folder = join(data, 'homes/programs/writer/home/.local/bin')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'writer-of-its-own'), `#!/bin/sh\nexec ${process.execPath} agent.mjs\n`, { mode: 0o755 })
  t.equal(saidIn(await turn('c')), 'wrote it, history it, home it, secret k-1')
})

t.test('a program that is not connected is not a provider', async t => {
  const { client } = await world(t)
  await t.rejects(client.call('POST /agent', { agent: 'agent/none', prompt: 'x' }), {
    reason: 'unprocessable',
    message: /no provider "agent\/none"/,
  })
})

t.test('a single connected agent is the default, and script can still be chosen', { skip }, async t => {
  const { turn } = await world(t)
  const frames = await turn('c', { agent: undefined })
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { provider: 'agent/writer' },
  )
  t.equal(saidIn(await turn('s', { agent: 'script', prompt: 'say hi' })), 'hi')
  t.equal(saidIn(await turn('m', { agent: undefined, model: 'script', prompt: 'say hi' })), 'hi', 'by its model')
})

t.test('with two connected agents one must be named', { skip }, async t => {
  const { turn } = await world(t, undefined, ['writer', 'other'])
  t.equal(saidIn(await turn('c', { agent: undefined, prompt: 'say hi' })), 'hi')
})
