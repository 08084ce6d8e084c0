// A daemon under a long mixed load, and its resources over time: `npm run soak [-- minutes]`. The exit code is 1
// if they grow.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { createClient, type Client } from '../../sdk/client.js'
import { inGit, makeWorkspace, root, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { framesOf } from '../support/turns.js'
import { asked, median, mib, ms } from './measure.js'
import type { Held } from './soak-probe.js'

const MINUTES = Number(asked[0] ?? 15)
const SAMPLES = 30
const WORKERS = 6
const STORM = 60

const top = realpathSync(mkdtempSync(join(tmpdir(), 'soak-')))
const [workspace, data, probe] = [join(top, 'work'), join(top, 'data'), join(top, 'held.json')]
const endings: (() => unknown)[] = []
const end = performance.now() + MINUTES * 60_000
const goesOn = (): boolean => performance.now() < end

/** Counters of completed work. */
const done = { turns: 0, landings: 0, streams: 0, calls: 0 }
const wrong: string[] = []

const script = (seed: number): string =>
  [
    ...Array.from({ length: 20 }, (_, step) => `think step ${step} of turn ${seed}`),
    `write made/${seed % 40}.txt`,
    `| what turn ${seed} made`,
    `read made/${seed % 40}.txt`,
    `run wc -c made/${seed % 40}.txt`,
    'say $out',
  ].join('\n')

/** Opens conversations, works, lands or discards, and repeats; removes the conversations in the end. */
const works = async (client: Client, worker: number): Promise<void> => {
  for (let round = 0; goesOn(); round++) {
    const conversationId = `w-${worker}-${round}`
    const isolated = round % 2 === 0
    for (let turn = 0; turn < 4 && goesOn(); turn++) {
      const { run } = await client.call('POST /agent', {
        conversationId,
        prompt: script(worker + turn * 10),
        ...(turn === 0 && { isolated }),
      })
      const frames = await framesOf(client, conversationId, { run }).all()
      const last = frames.at(-1)?.event
      if (last?.kind !== 'done' || last.reason !== 'completed')
        wrong.push(`${conversationId} ended with ${JSON.stringify(last)}`)
      done.turns++
    }
    if (isolated) {
      await client.call('POST /agents/{id}/land', { id: conversationId }).then(
        () => done.landings++,
        () => {},
      )
      await client.call('POST /agents/{id}/discard', { id: conversationId })
    } else {
      await client.call('POST /agents/archive', { ids: [conversationId] })
      await client.call('POST /agents/purge', { ids: [conversationId] })
    }
  }
}

/** Watchers that connect all at once, read little or nothing, and disconnect abruptly. */
const storms = async (client: Client, { url }: RunningDaemon): Promise<void> => {
  const { hostname, port } = new URL(url)
  await client.call('POST /agent', {
    conversationId: 'watched',
    prompt: `repeat 2000 say ${'words '.repeat(20)}\nwait words`,
  })
  const body = JSON.stringify({ conversationId: 'watched' })
  while (goesOn()) {
    const tokens = await Promise.all(
      Array.from({ length: STORM / 12 }, (_, at) =>
        client.call('POST /system/control/tokens', { label: `storm ${at}`, scope: 'read' }),
      ),
    )
    const sockets = await Promise.all(
      tokens.flatMap(({ token }) =>
        Array.from(
          { length: 12 },
          () =>
            new Promise<Socket>(resolve => {
              const socket = connect(Number(port), hostname, () => {
                socket.write(
                  'POST /agent/attach '
                    + `HTTP/1.1\r\nhost: ${hostname}:${port}\r\nx-sandbox-control: ${token}\r\ncontent-type: `
                    + `application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
                )
                if (Math.random() < 0.5) socket.resume()
                resolve(socket)
              }).on('error', () => {})
            }),
        ),
      ),
    )
    done.streams += sockets.length
    await setTimeout(2_000)
    for (const socket of sockets) socket.resetAndDestroy()
    for (const { id } of tokens) await client.call('DELETE /system/control/tokens/{id}', { id })
    await setTimeout(1_000)
  }
  await client.call('POST /agent/stop', { conversationId: 'watched' })
}

/** The calls of an open page. */
const asks = async (client: Client): Promise<void> => {
  const stop = new AbortController()
  const hears = (async () => {
    for await (const _ of (await client.call('GET /events', {}, { signal: stop.signal })) as AsyncIterable<unknown>)
      done.calls++
  })().catch(error => stop.signal.aborted || wrong.push(`the events ended: ${error}`))
  for (let round = 0; goesOn(); round++) {
    await client.call('GET /agents')
    await client.call('GET /agents/search', { query: 'turn' })
    await client.call('POST /settings/patch', { set: { agentRetentionDays: 30 + (round % 2) } })
    done.calls += 3
    await setTimeout(500)
  }
  stop.abort()
  await hears
}

interface Sample extends Held {
  readonly resident: number
  readonly files: number
  readonly journals: number
  readonly turns: number
}

const sizeOf = (folder: string): number => {
  let size = 0
  for (const name of readdirSync(folder, { recursive: true }) as string[])
    size += statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  return size
}

const sample = async ({ pid, process: child }: RunningDaemon): Promise<Sample> => {
  rmSync(probe, { force: true })
  child.kill('SIGUSR2')
  let held: Held | undefined
  while (!held) {
    await setTimeout(20)
    try {
      held = JSON.parse(readFileSync(probe, 'utf8')) as Held
    } catch {
      continue
    }
  }
  const resident = Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  return {
    ...held,
    resident,
    files: readdirSync(`/proc/${pid}/fd`).length,
    journals: sizeOf(join(data, 'journals')),
    turns: done.turns,
  }
}

/** The allowed use in the last third of the run, compared with the middle third, when the daemon is warm. */
const ALLOWED: { readonly [what in 'used' | 'resident' | 'files' | 'journals']: (before: number) => number } = {
  used: before => before * 1.25 + 16 * 2 ** 20,
  resident: before => before * 1.25 + 32 * 2 ** 20,
  files: before => before + 24,
  journals: before => before * 1.5 + 4 * 2 ** 20,
}

const main = async (): Promise<boolean> => {
  makeWorkspace(
    workspace,
    Object.fromEntries(
      Array.from({ length: 300 }, (_, file) => [
        `src/p${file % 20}/file-${file}.ts`,
        `export const v = ${file}\n`.repeat(30),
      ]),
    ),
  )
  mkdirSync(data, { mode: 0o700 })
  const daemon = await spawnDaemon(
    { teardown: ending => void endings.push(ending as () => unknown) },
    {
      workspace,
      data,
      env: {
        SOAK_PROBE: probe,
        NODE_OPTIONS: `--import=${pathToFileURL(join(root, 'test', 'bench', 'soak-probe.js')).href}`,
      },
    },
  )
  const { token } = await daemon.client.call('POST /system/control/tokens', { label: 'soak', scope: 'land' })
  const worker = createClient({ url: daemon.url, token })
  const work = Promise.all([
    ...Array.from({ length: WORKERS }, (_, at) => works(worker, at)),
    storms(daemon.client, daemon),
    asks(daemon.client),
  ])
  work.catch(() => {})
  console.log(
    `${availableParallelism()} cores, Node ${process.versions.node}, `
      + `load ${loadavg()[0]!.toFixed(1)}, ${MINUTES} minutes\n`,
  )
  console.log(
    '| min | in use | resident | files | journals | loop p99 | loop max | turns |\n| --- | --- | --- | --- | --- '
      + '| --- | --- | --- |',
  )
  const samples: Sample[] = []
  for (let at = 1; at <= SAMPLES; at++) {
    const due = end - MINUTES * 60_000 * (1 - at / SAMPLES)
    await Promise.race([setTimeout(Math.max(0, due - performance.now())), work])
    const one = await sample(daemon)
    samples.push(one)
    console.log(
      `| ${((MINUTES * at) / SAMPLES).toFixed(1)} | ${mib(one.used)} | ${mib(one.resident)} | ${one.files} `
        + `| ${mib(one.journals)} | ${ms(one.p99)} | ${ms(one.max)} | ${one.turns} |`,
    )
  }
  await work
  if (inGit(workspace, 'for-each-ref', 'refs/heads/agent').trim() !== '')
    wrong.push('branches of discarded conversations are left')
  const third = Math.floor(SAMPLES / 3)
  for (const [what, allowed] of Object.entries(ALLOWED) as [keyof typeof ALLOWED, (before: number) => number][]) {
    const [before, after] = [samples.slice(third, -third), samples.slice(-third)].map(part =>
      median(part.map(one => one[what])),
    )
    if (after! > allowed(before!)) wrong.push(`${what} grew from ${Math.round(before!)} to ${Math.round(after!)}`)
  }
  console.log(
    `\n${done.turns} turns, ${done.landings} landings, ${done.streams} streams cut, ${done.calls} calls and events`,
  )
  for (const what of wrong.slice(0, 20)) console.log(what)
  console.log(wrong.length > 0 ? 'NOT FLAT' : 'flat')
  return wrong.length === 0
}

let flat = false
try {
  flat = await main()
} finally {
  for (const ending of endings) await ending()
  rmSync(top, { recursive: true, force: true })
}
process.exit(flat ? 0 : 1)
