// Measures a board of a thousand conversations: `node dist/test/bench/roster.js [conversations …]`. Only the ratios
// count.
import { fork, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Roster } from '../../plugins/agents/contract.js'
import { inGit, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { makeFleet, spawnsIn, type Fleet } from '../support/repositories/fleet.js'
import { runTurn } from '../support/turns.js'
import { asked, median, ms, print, quick, timed, verdict } from './measure.js'

const SIZES = asked.length > 0 ? asked.map(Number) : quick ? [20] : [100, 1_000]
/** The target for a thousand conversations without a new commit, in ms. */
const TARGET = 300
const ROUNDS = quick ? 1 : 9
const EVENTS = quick ? 1 : 6
const APART = quick ? 50 : 1_500
const TICK_MS = 10

const endings: (() => unknown)[] = []
const many = async (rounds: number, work: (round: number) => unknown): Promise<number[]> => {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) times.push(await timed(() => work(round)))
  return times
}
const row = (what: string, times: readonly number[], more = ''): void =>
  print(what, ms(median(times)), `best ${ms(Math.min(...times))}  ${more}`)

/** The processor time of a process so far, in ms. */
const processorOf = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number)
  return (user + system) * TICK_MS
}

/** The times of a bare server in a separate process that serialises the same roster for each request. */
const bareTimes = async (roster: Roster): Promise<number[]> => {
  const child = fork(fileURLToPath(import.meta.url), ['bare'])
  child.send(roster)
  const [port] = (await once(child, 'message')) as [number]
  const times = await many(ROUNDS, async () => (await fetch(`http://127.0.0.1:${port}/agents`)).json())
  child.kill()
  return times
}

const asBare = (): void =>
  void process.once('message', (roster: Roster) => {
    const server = createServer((_, res) => {
      const body = Buffer.from(JSON.stringify(roster))
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
    }).listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
  })

const start = ({ workspace, data }: Fleet, env: NodeJS.ProcessEnv): Promise<RunningDaemon> =>
  spawnDaemon({ teardown: ending => void endings.push(ending as () => unknown) }, { workspace, data, env })

/** Watches the sandbox's events like a client, until the returned function is called. */
const watch = async ({ client }: RunningDaemon): Promise<() => void> => {
  const stop = new AbortController()
  const events = (await client.call('GET /events', { roster: 'delta' }, { signal: stop.signal })) as AsyncIterable<{
    kind: string
  }>
  const first = Promise.withResolvers<void>()
  void (async () => {
    for await (const { kind } of events) if (kind === 'agents') first.resolve()
  })().catch(() => {})
  await first.promise
  return () => stop.abort()
}

/** The CPU time of the daemon per event, a second apart, because events are sent at most once a second. */
const eventCost = async (daemon: RunningDaemon, event: (round: number) => unknown): Promise<number> => {
  await setTimeout(APART)
  const before = processorOf(daemon.pid)
  for (let round = 0; round < EVENTS; round++) {
    await event(round)
    await setTimeout(APART)
  }
  return (processorOf(daemon.pid) - before) / EVENTS
}

const commit = (workspace: string, branch: string, path: string): void => {
  const index = { GIT_INDEX_FILE: join(workspace, '.git', 'bench-index') }
  const by = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org']
  const run = (...args: string[]) =>
    execFileSync('git', [...by, ...args], {
      cwd: workspace,
      encoding: 'utf8',
      env: { ...process.env, ...index },
    }).trim()
  run('read-tree', branch)
  writeFileSync(join(workspace, '.git', 'bench-file'), `${performance.now()}\n`)
  run(
    'update-index',
    '--add',
    '--cacheinfo',
    `100644,${run('hash-object', '-w', join(workspace, '.git', 'bench-file'))},${path}`,
  )
  run('update-ref', branch, run('commit-tree', '-p', branch, '-m', 'more', run('write-tree')))
}

const measure = async (count: number): Promise<void> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-roster-')))
  endings.push(() => rmSync(folder, { recursive: true, force: true }))
  const fleet = await makeFleet(folder, count)
  const { workspace } = fleet
  const { env, taken } = spawnsIn(folder)
  const first = fleet.live[0]!.id
  let daemon = await start(fleet, env)
  await daemon.client.call('GET /info')
  const spawned = () => `${taken().length} processes`
  const read = () => daemon.client.call('GET /agents')
  taken()
  console.log(`${count} conversations`)

  row('roster, nothing known of any', [await timed(read)], spawned())
  const roster = await read()
  if (roster.agents.length !== count) throw new Error(`expected ${count} cards, found ${roster.agents.length}`)
  const refs = await many(ROUNDS, () => inGit(workspace, 'for-each-ref', 'refs/heads/agent'))
  const bare = await bareTimes(roster)
  taken()
  const warm = await many(ROUNDS, read)
  const against = (times: readonly number[]) => `${(median(times) / (median(refs) + median(bare))).toFixed(2)}x`
  row('git for-each-ref of the same branches (baseline)', refs)
  row('node:http writing the same answer (baseline)', bare, `${(JSON.stringify(roster).length / 1024).toFixed(0)} KiB`)
  row('roster, nothing moved', warm, `${against(warm)} of both  ${spawned()} in ${ROUNDS}`)
  if (count === 1_000) verdict('roster of 1,000 conversations, nothing moved', median(warm), { most: TARGET, as: ms })
  const moved = async (times: number, move: (round: number) => void): Promise<number[]> => {
    const all: number[] = []
    for (let round = 0; round < times; round++) {
      move(round)
      all.push(await timed(read))
    }
    return all
  }
  const branch = await moved(3, round => commit(workspace, `refs/heads/agent/${first}`, `more-${round}.txt`))
  row('roster, one branch moved by a commit', branch, `${against(branch)}  ${spawned()} in 3`)
  const main = await moved(3, round => {
    writeFileSync(join(workspace, `main-${round}.txt`), 'new\n')
    inGit(workspace, 'add', '-A')
    inGit(workspace, 'commit', '-qm', 'more')
  })
  row('roster, main moved by a commit', main, `${against(main)}  ${spawned()} in 3`)

  await daemon.terminate()
  taken()
  daemon = await start(fleet, env)
  await daemon.client.call('GET /info')
  taken()
  row('roster, first after a restart', [await timed(read)], spawned())

  const alone = await eventCost(daemon, () => daemon.client.call('POST /agents/{id}/seen', { id: first }))
  const turnAlone = await eventCost(daemon, round => runTurn(daemon.client, `t-${round}`, 'say hello'))
  const leave = await watch(daemon)
  const watched = await eventCost(daemon, () => daemon.client.call('POST /agents/{id}/seen', { id: first }))
  const turn = await eventCost(daemon, round => runTurn(daemon.client, `t-${round}`, 'say hello'))
  leave()
  console.log(`  processor time of a mark: nobody watches ${ms(alone)}, somebody watches ${ms(watched)}`)
  console.log(`  processor time of a turn: nobody watches ${ms(turnAlone)}, somebody watches ${ms(turn)}`)

  const find = (query: string) => daemon.client.call('GET /agents/search', { query })
  row('search, the index not there yet', [await timed(() => find('heron'))])
  while ((await find('heron')).indexing) await setTimeout(100)
  row('search, a word in every tenth', await many(ROUNDS, () => find('heron')))
  row('search, a word in nothing', await many(ROUNDS, () => find('cormorant')))
  row('search, a word in everything', await many(3, () => find('ordinary')))
  await daemon.terminate()
  daemon = await start(fleet, env)
  await daemon.client.call('GET /info')
  row('search, first after a restart', [await timed(() => find('heron'))])
  await daemon.terminate()
}

if (process.argv[2] === 'bare') asBare()
else {
  try {
    for (const count of SIZES) await measure(count)
  } finally {
    for (const ending of endings.reverse()) await ending()
  }
  process.exit(0)
}
