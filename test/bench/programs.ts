// Measures turns in agent programs, with the bundled one: `node dist/test/bench/programs.js`. The
// turns of all conversations are in one process, behind one wall and in one network.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '../../sdk/client.js'
import { makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { framesOf } from '../support/turns.js'
import { inTurns, median, mib, ms, print, quick, ratio, verdict, x } from './measure.js'

const AT_ONCE = quick ? 2 : 20
const ROUNDS = quick ? 1 : 15
const top = realpathSync(mkdtempSync(join(tmpdir(), 'bench-programs-')))
const [workspace, data] = [join(top, 'workspace'), join(top, 'data')]
const endings: (() => unknown)[] = []

makeWorkspace(workspace)
mkdirSync(data, { mode: 0o700 })
const daemon = await spawnDaemon(
  { teardown: ending => void endings.push(ending as () => unknown) },
  { workspace, data },
)
const { client, pid } = daemon

const resident = (of: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${of}/status`, 'utf8'))?.[1] ?? NaN) * 1024
/** Memory of a process with its part of what it shares with others. */
const proportional = (of: number): number =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${of}/smaps_rollup`, 'utf8'))?.[1] ?? NaN) * 1024

/** The processes of agent programs of this daemon: Node, not the wall around it. */
const programs = (): number[] =>
  readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      const isIts = readFileSync(`/proc/${name}/environ`, 'utf8').includes(data)
      return /node$/.test(words[0]!) && words.some(word => word.endsWith('script-agent.js')) && isIts
        ? [Number(name)]
        : []
    } catch {
      return []
    }
  })

const start = (conversationId: string, prompt: string, harness: 'native' | 'vendor-code', isolated = true) =>
  client.call('POST /agent', { conversationId, prompt, harness, isolated, permissionMode: 'bypassPermissions' })

/** The time until the agent's first words, of a turn that then ends. */
const spoken = async (conversationId: string, harness: 'native' | 'vendor-code'): Promise<number> => {
  const started = performance.now()
  await start(conversationId, 'say hello', harness)
  const frames = framesOf(client, conversationId)
  await frames.until(({ kind }) => kind === 'delta')
  const time = performance.now() - started
  await frames.all()
  return time
}

try {
  await spoken('first', 'vendor-code')
  let conversations = 0
  const times = await inTurns(
    {
      warm: () => spoken('first', 'vendor-code'),
      cold: () => spoken(`cold-${++conversations}`, 'vendor-code'),
      inside: () => spoken('inside', 'native'),
    },
    ROUNDS,
  )
  for (const [name, what] of [
    ['warm', 'first words of a turn in a program that waits for it'],
    ['cold', 'the same of the first turn of a conversation, whose program starts'],
    ['inside', 'the same without a program'],
  ] as const)
    print(what, ms(median(times[name])), `${x(ratio(times[name], times.inside))} of one without a program`)
  verdict('programs: a turn in a waiting program, later than one without', median(times.warm) - median(times.inside), {
    most: 50,
    as: ms,
  })

  const idle = resident(pid)
  const names = Array.from({ length: AT_ONCE }, (_, nth) => `held-${nth}`)
  await Promise.all(names.map(name => start(name, 'say hello\nwait 600000', 'vendor-code')))
  // One credential may have 16 streams.
  const { token } = await client.call('POST /system/control/tokens', { label: 'bench', scope: 'read' })
  const watchers = [client, createClient({ url: daemon.url, token })]
  const watched = names.map((name, nth) => framesOf(watchers[nth % 2]!, name))
  await Promise.all(watched.map(frames => frames.until(({ kind }) => kind === 'delta')))
  const busy = resident(pid)
  print('the daemon before these turns', mib(idle))
  verdict(`programs: the daemon, resident, with ${AT_ONCE} turns in programs at once`, busy, {
    most: 250 * 2 ** 20,
    as: mib,
  })
  print('of it each turn', mib((busy - idle) / AT_ONCE))
  const held = programs()
  print(`programs that run, ${held.length}, each resident`, mib(median(held.map(resident))))
  print('the same, its part of shared memory counted once', mib(median(held.map(proportional))))
  await Promise.all(names.map(conversationId => client.call('POST /agent/stop', { conversationId })))
  await Promise.all(watched.map(frames => frames.all()))
  print('programs that wait after all turns ended', String(programs().length))
} finally {
  for (const ending of endings.reverse()) await ending()
  rmSync(top, { recursive: true, force: true })
}
