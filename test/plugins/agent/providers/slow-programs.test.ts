import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Peers, type PeerUser } from '../../../../plugins/agent/providers/acp/peers.js'
import type { SharedProgram } from '../../../../plugins/agent/providers/adapter.js'
import { listEnv } from '../../../../sdk/node/programs/run.js'
import { folderOf } from '../../../support/daemon.js'
import { agent, failure, prose, world } from './acp-support.js'

/** Much more than a start takes, and much less than these programs show life. */
const PATIENCE = { slowMs: 500, quietMs: 1500 }
const LIVES_MS = 4000

const busy = (ms: number): string => `for (const end = Date.now() + ${ms}; Date.now() < end;);`

/** Programs that take longer to answer than they may show no sign of life. */
const SLOW: readonly (readonly [does: string, source: string])[] = [
  ['uses a processor', busy(LIVES_MS) + agent('say("here")')],
  [
    'has a child that uses a processor',
    `import { spawnSync } from 'node:child_process'
    spawnSync(process.execPath, ['-e', ${JSON.stringify(busy(LIVES_MS))}])
    ${agent('say("here")')}`,
  ],
  [
    'prints a line from time to time',
    `for (let n = 0; n < ${LIVES_MS / 500}; n++) {
      console.error('unpacking')
      await new Promise(resolve => setTimeout(resolve, 500))
    }
    ${agent('say("here")')}`,
  ],
]
for (const [does, source] of SLOW) {
  t.test(`a program that ${does} may take long to answer, and the turn says so`, async t => {
    const { turn } = world(t, source, { patience: PATIENCE })
    const frames = await turn()
    t.equal(prose(frames), 'here|', JSON.stringify(failure(frames)))
    t.match(frames[0], {
      kind: 'notice',
      text: /^the program is getting ready; it has not answered after .* s, and has/,
    })
  })
}

t.test('a session may take long to open, and the turn says so', async t => {
  const opens = "method === 'session/new' || method === 'session/load') "
  const slow = agent('say("here")')
    .replace(opens, `${opens}{ ${busy(LIVES_MS)} `)
    .replace("'s-1' } })\n", "'s-1' } }) }\n")
  const { turn } = world(t, slow, { patience: PATIENCE })
  const frames = await turn()
  t.equal(prose(frames), 'here|', JSON.stringify(failure(frames)))
  t.match(
    frames.findLast(({ kind }) => kind === 'notice'),
    { text: /it has not opened a session after .* s, and has used .* of processor time/ },
  )
})

t.test('a program that hangs is announced as quiet, then ended with a clear sentence', async t => {
  const hangs = `${agent('say("here")').replace("method === 'initialize'", 'false')}`
  const { turn, peers } = world(t, hangs, { patience: PATIENCE })
  const frames = await turn()
  t.match(failure(frames), {
    code: 'harness-crashed',
    message:
      /^the program has not answered, and showed no sign of life for 1.5 s: it wrote nothing and used no processor/,
  })
  t.match(frames[0], { kind: 'notice', text: /it has not answered after/ })
  t.equal(peers.size, 0)
})

t.test('a stop ends the start of a program that works on and on', async t => {
  const { turn, stop, root } = world(t, `${started('../pid')}\n${busy(1e9)}`, { patience: PATIENCE })
  const frames = await turn({}, ({ kind }) => kind === 'notice' && stop.abort())
  t.equal(failure(frames), undefined)
  await gone(pidIn(join(root, '../pid')))
})

t.test('a program starts with the priority of the daemon, and its turns have a lower one', async t => {
  const own = getPriority()
  const { turn } = world(
    t,
    `import { getPriority } from 'node:os'
    import { spawn } from 'node:child_process'
    const first = getPriority()
    const child = spawn('sleep', ['60'])
    ${agent('say([first, getPriority(), getPriority(child.pid)].join(" ")); child.kill()')}`,
  )
  t.equal(prose(await turn()), `${own} 10 10|`)
})

t.test('a start that several turns wait for goes on until the last of them is stopped', async t => {
  const folder = folderOf(t)
  const path = join(folder, 'agent.mjs')
  mkdirSync(join(folder, 'tree'))
  writeFileSync(path, `${started('./pid')}\n${busy(1e9)}`)
  const peers = new Peers({ ...PATIENCE, sessionMs: 1000, silenceMs: 1000, cancelMs: 1000 })
  t.teardown(() => peers.close())
  const program: SharedProgram = {
    key: 'k',
    tree: { root: folder, seen: { root: folder, cwd: folder }, enforced: false, begun: () => () => {} } as never,
    command: async () => ({
      program: process.execPath,
      args: [path],
      env: listEnv({}),
      cwd: join(folder, 'tree'),
      enforced: false,
    }),
    show: async () => 'shown',
    hide: async () => {},
    expose: async () => '',
  }
  const joins = ['a', 'b'].map(conversationId => {
    const stop = new AbortController()
    const [heard, told] = [new EventTarget(), new Event('told')]
    const user: PeerUser = {
      conversationId,
      provider: 'p',
      signal: stop.signal,
      waits: () => heard.dispatchEvent(told),
    }
    const over = peers.join(user, program).then(
      () => 'joined',
      () => 'stopped',
    )
    return { stop, over, told: once(heard, 'told') }
  })
  await Promise.all(joins.map(({ told }) => told))
  const pid = pidIn(join(folder, 'tree/pid'))
  joins[0]!.stop.abort()
  t.equal(await joins[0]!.over, 'stopped')
  process.kill(pid, 0)
  joins[1]!.stop.abort()
  t.equal(await joins[1]!.over, 'stopped')
  await gone(pid)
})

/** The line of a program that writes its process id. */
const started = (path: string): string =>
  `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(path)}, String(process.pid))`

const pidIn = (path: string): number => Number(readFileSync(path, 'utf8'))

/** Resolves when a process has ended; the test runs out of time if it never does. */
const gone = async (pid: number): Promise<void> => {
  for (;;) {
    try {
      process.kill(pid, 0)
    } catch {
      return
    }
    await delay(20)
  }
}
