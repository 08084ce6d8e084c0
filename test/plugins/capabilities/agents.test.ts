import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { greet } from '../../../plugins/capabilities/agents/handshake.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { noOpencode, OPENCODE } from '../../support/peers.js'
import { add, capabilitiesDaemon, program } from './support.js'
import { programFile } from '../../../sdk/node/programs/package.js'

const SCRIPT_AGENT = `node ${programFile('plugins/agent/providers/script-agent.js')}`

t.test('an agent program is connected after a real handshake, and recorded', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const frames = await add(daemon, { id: 'scripts', kind: 'agent', config: { command: SCRIPT_AGENT, name: 'Scripts' } })
  t.match(frames.at(-1), { kind: 'result', ok: true, id: 'scripts', status: { state: 'active' } })
  t.match(
    frames.map(frame => (frame.kind === 'log' ? frame.message : frame.kind)).join('\n'),
    /speaks the Agent Client/,
  )
  t.same(JSON.parse(readFileSync(join(daemon.workspace, '.sandbox/config/capabilities.json'), 'utf8')), {
    scripts: { kind: 'agent', config: { command: SCRIPT_AGENT, name: 'Scripts' } },
  })
  const { capabilities } = await daemon.client.call('GET /capabilities')
  t.match(
    capabilities,
    exactly({ id: 'scripts', kind: 'agent', label: 'Scripts', status: { state: 'active' }, secrets: exactly() }),
  )
  t.ok(existsSync(join(daemon.data, 'homes/programs/scripts/home')))
})

t.test('opencode is connected', { skip: noOpencode }, async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const frames = await add(daemon, { id: 'opencode', kind: 'agent', config: { command: `${OPENCODE} acp` } })
  t.match(frames.at(-1), { kind: 'result', ok: true, status: { state: 'active' } })
})

t.test('a program that does not do its part is one sentence, and nothing is kept of it', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const attempts: [command: string, sentence: RegExp][] = [
    [
      program(daemon, 'ends', '#!/bin/sh\necho no key >&2\nexit 3\n'),
      /ended with exit code 3: no key; run the command/,
    ],
    [program(daemon, 'floods', '#!/bin/sh\nexec tr "\\\\0" x </dev/zero\n'), /a line of more than 1048576 bytes/],
    [program(daemon, 'talks', '#!/bin/sh\necho hello\nsleep 60\n'), /no message of the Agent Client Protocol: "hello"/],
    [
      program(daemon, 'logs', '#!/bin/sh\nwhile :; do echo \'{"jsonrpc":"2.0","method":"x"}\'; done\n'),
      /wrote more than/,
    ],
    [
      program(
        daemon,
        'old',
        `#!/bin/sh\nread line\necho '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":9}}'\nsleep 9\n`,
      ),
      /version 9/,
    ],
    [
      program(
        daemon,
        'draft',
        `#!/bin/sh\nread line\necho '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":0}}'\nsleep 9\n`,
      ),
      /speaks version 0 of the Agent Client Protocol, not 1: install a version/,
    ],
    [
      program(
        daemon,
        'refuses',
        `#!/bin/sh\nread line\necho '{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"licence"}}'\nsleep 9\n`,
      ),
      /licence/,
    ],
  ]
  for (const [command, sentence] of attempts) {
    t.match(
      await refusalOf(() => add(daemon, { id: 'bad', kind: 'agent', config: { command } })),
      { message: sentence },
      command,
    )
  }
  t.same((await daemon.client.call('GET /capabilities')).capabilities, [])
  t.notOk(existsSync(join(daemon.workspace, '.sandbox/config/capabilities.json')))
  t.same(readdirSync(join(daemon.data, 'homes/programs')), [])
})

const BUSY = '#!/bin/sh\nwhile :; do :; done\n'

t.test('removing a connection stops an attempt to connect it, of which nothing is kept', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const { client } = daemon
  const command = program(daemon, 'busy', BUSY)
  const steps = (await client.call('POST /capabilities', { id: 'busy', kind: 'agent', config: { command } }))[
    Symbol.asyncIterator
  ]()
  t.match((await steps.next()).value, { kind: 'log', message: /starting/ })
  t.same(await client.call('DELETE /capabilities/{id}', { id: 'busy' }), { ok: true })
  t.match(
    await refusalOf(async () => {
      while (!(await steps.next()).done) continue
    }),
    { message: 'connecting busy was stopped, and nothing was kept' },
  )
  t.same((await client.call('GET /capabilities')).capabilities, [])
  t.same(readdirSync(join(daemon.data, 'homes/programs')), [])
})

t.test('a handshake may take as long as the program shows life, and says what it waits for', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const answer = `read line; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'; sleep 9`
  const times = { slowMs: 300, quietMs: 1000 }
  const meet = async (text: string) => {
    const heard: string[] = []
    const { signal } = new AbortController()
    const command = { program: program(daemon, 'slow', text), args: [], env: listEnv(), cwd: '/', enforced: false }
    const given = { program: 'slow', signal, waits: (how: string) => void heard.push(how), times }
    const greeting = await greet(command, given).catch((error: Error) => error.message)
    return { greeting, heard }
  }
  const lives = 'for n in 1 2 3 4 5 6 7 8 9; do echo unpacking >&2; sleep 0.3; done'
  const works = `end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done`
  for (const slow of [lives, works]) {
    const { greeting, heard } = await meet(`#!/bin/sh\n${slow}\n${answer}\n`)
    t.match(greeting, { loadsSessions: false }, slow)
    t.match(heard[0], /^after .* s, and has (?:used|shown no) /)
  }
  const { greeting } = await meet('#!/bin/sh\nexec sleep 60\n')
  t.match(greeting, /^slow has not answered, and showed no sign of life for 1 s: .*; expected an agent program/)
})
