// Measures a start and an idle daemon against bare node:http and Koa alone: `node
// dist/test/bench/start.js [warm|cold|idle|groups|growth|conversations]`.
import { build } from 'esbuild'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { readManifests } from '../../kernel/loader.js'
import type { PluginManifest } from '../../kernel/manifest.js'
import { inOrder } from '../../kernel/permissions.js'
import { root, makeWorkspace } from '../support/daemon.js'
import { seedConversations } from '../support/repositories/seeded-conversations.js'
import { asked, inTurns, median, mib, ms, print, quick, ratio, verdict, x } from './measure.js'

const ROUNDS = quick ? 1 : 15
const COLD_ROUNDS = quick ? 1 : 7
/** The time after which all background work of a start has ended. */
const IDLE_MS = quick ? 30 : 3_000
const PACKAGE = join(root, '..')

const top = realpathSync(mkdtempSync(join(tmpdir(), 'bench-start-')))
const workspace = join(top, 'workspace')

/** A program, with its arguments and environment. */
interface Program {
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

interface Started {
  readonly wall: number
  /** The processor time of all threads until it was ready. */
  readonly cpu: number
  readonly rss: number
  readonly pss: number
}

const figure = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]) * 1024

/** The processor time of every thread of a process so far, in ms. */
const processorOf = (pid: number): number => {
  const tasks = `/proc/${pid}/task`
  return (
    readdirSync(tasks).reduce(
      (sum, task) => sum + Number(readFileSync(join(tasks, task, 'schedstat'), 'utf8').split(' ')[0]),
      0,
    ) / 1e6
  )
}

/** Starts a program, waits for its line, and ends it again. */
const started = async ({ args, env }: Program, idle = 0, end: NodeJS.Signals = 'SIGTERM'): Promise<Started> => {
  const before = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } })
  const exited = once(child, 'exit')
  await Promise.race([
    once(child.stdout, 'data'),
    exited.then(() => Promise.reject(new Error(`${args.join(' ')} ended before it was ready`))),
  ])
  const wall = performance.now() - before
  const cpu = processorOf(child.pid!)
  await setTimeout(idle)
  const rss = figure(readFileSync(`/proc/${child.pid}/status`, 'utf8'), 'VmRSS')
  const pss = figure(readFileSync(`/proc/${child.pid}/smaps_rollup`, 'utf8'), 'Pss')
  child.kill(end)
  await exited
  return { wall, cpu, rss, pss }
}

let folders = 0
/** The real program with its own data folder; every start is of a known workspace. */
const daemon = (main: string, more: NodeJS.ProcessEnv = {}): Program => {
  const state = join(top, `state-${folders++}`)
  return {
    args: [main, '--json', '--port', '0', '--workspace', workspace, '--data', join(state, 'data')],
    env: { XDG_STATE_HOME: state, ...more },
  }
}

const NEVER_COMPILED = { NODE_DISABLE_COMPILE_CACHE: '1' }
/** A baseline with a compile cache like the real program's. */
const baseline = (file: string, kind: 'bare' | 'koa', more?: NodeJS.ProcessEnv): Program => {
  const cache = join(top, `compiled-${folders++}`)
  return { args: [file, kind], env: more ?? { NODE_COMPILE_CACHE: cache } }
}

/** The baseline in one file, as the real program is bundled. */
const bundled = async (): Promise<string> => {
  const outfile = join(top, 'baseline', 'start-baseline.mjs')
  await build({
    entryPoints: [join(root, 'test', 'bench', 'start-baseline.js')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    logLevel: 'error',
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
  })
  return outfile
}

/** The real program in a separate package with only some of the groups. */
const withGroups = (name: string, keep: (manifest: string) => boolean): Program => {
  const folder = join(top, name)
  cpSync(join(root, 'bundle'), join(folder, 'dist', 'bundle'), { recursive: true })
  cpSync(join(PACKAGE, 'package.json'), join(folder, 'package.json'))
  symlinkSync(realpathSync(join(PACKAGE, 'node_modules')), join(folder, 'node_modules'))
  mkdirSync(join(folder, 'manifests'))
  for (const manifest of readdirSync(join(PACKAGE, 'manifests')).filter(keep))
    cpSync(join(PACKAGE, 'manifests', manifest), join(folder, 'manifests', manifest))
  return daemon(join(folder, 'dist', 'bundle', 'kernel', 'main.js'))
}

/** The real program with 36 more groups of ten calls each, every call as large as a real one. */
const grown = (): Program => {
  const program = withGroups('grown', () => true)
  const folder = join(top, 'grown')
  const areas = JSON.parse(readFileSync(join(PACKAGE, 'manifests', 'areas.json'), 'utf8')) as PluginManifest
  for (let group = 0; group < 36; group++) {
    const name = `group-${group}`
    const routes = Array.from({ length: 10 }, (_, call) => [
      `POST /${name}/{id}/part-${call}`,
      { id: `${name}.part${call}`, role: 'collaborator', tokens: ['drive', 'land'] },
    ])
    const manifest = {
      ...areas,
      name,
      entry: `plugins/${name}/plugin.js`,
      routes: Object.fromEntries(routes),
      calls: [],
    }
    writeFileSync(join(folder, 'manifests', `${name}.json`), JSON.stringify(manifest))
    cpSync(join(root, 'bundle', 'plugins', 'areas'), join(folder, 'dist', 'bundle', 'plugins', name), {
      recursive: true,
    })
  }
  return program
}

/** Measures what 36 unused groups add to a start and to an idle daemon. */
const growth = async (): Promise<void> => {
  const programs = { real: withGroups('real', () => true), grown: grown() }
  await keepCompiled(Object.values(programs))
  const { of } = await compare(programs, ROUNDS)
  const later = (part: 'wall' | 'cpu') =>
    median(of('grown', part).map((time, round) => time - of('real', part)[round]!))
  verdict('start: 36 groups more that nobody asks for, ready later', later('wall'), { most: 15, as: ms })
  print('start: the same by the processor', ms(later('cpu')))
  const still = await compare(programs, quick ? 1 : 5, () => {}, IDLE_MS)
  verdict('idle memory: 36 groups more', median(still.of('grown', 'rss')) - median(still.of('real', 'rss')), {
    most: 8 * 1024 * 1024,
    as: mib,
  })
}

/** Evicts files from the page cache, except pages that another process has mapped. */
const forget = (files: readonly string[]): void => {
  for (const file of files) execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none'])
}

const filesBelow = (folder: string): string[] => globSync(join(folder, '**')).filter(file => statSync(file).isFile())

/** Runs programs alternately and returns all measurements of each. */
const compare = async <Name extends string>(
  programs: { readonly [name in Name]: Program },
  rounds: number,
  before: () => void = () => {},
  idle = 0,
  end: NodeJS.Signals = 'SIGTERM',
) => {
  const names = Object.keys(programs) as Name[]
  const found = Object.fromEntries(names.map(name => [name, []])) as unknown as { readonly [name in Name]: Started[] }
  const works = Object.fromEntries(
    names.map(name => [
      name,
      async () => {
        before()
        found[name].push(await started(programs[name], idle, end))
        return 0
      },
    ]),
  ) as unknown as { readonly [name in Name]: () => Promise<number> }
  await inTurns(works, rounds)
  return {
    of: (name: Name, part: keyof Started): number[] => found[name].map(one => one[part]),
    least: (name: Name, part: keyof Started) => Math.min(...found[name].map(one => one[part])),
  }
}

/** Starts each program until its compile cache is complete: a program writes it at its end, for the next start. */
const keepCompiled = async (programs: readonly Program[]): Promise<void> => {
  for (const program of programs)
    for (let start = 0; start < (quick ? 0 : 2); start++) await started(program, IDLE_MS / 3)
}

const warm = async (main: string, file: string): Promise<void> => {
  const unbundled = join(root, 'test', 'bench', 'start-baseline.js')
  const programs = {
    bare: baseline(file, 'bare'),
    modules: baseline(unbundled, 'koa'),
    koa: baseline(file, 'koa'),
    daemon: daemon(main),
  }
  await keepCompiled(Object.values(programs))
  const { of, least } = await compare(programs, ROUNDS)
  const shown = {
    bare: 'node:http (baseline)',
    modules: 'Koa alone, as it is installed',
    koa: 'Koa alone, bundled (baseline)',
    daemon: 'the daemon',
  }
  for (const name of ['bare', 'modules', 'koa', 'daemon'] as const) {
    print(
      `start, warm: ${shown[name]}`,
      ms(median(of(name, 'wall'))),
      `best ${ms(least(name, 'wall'))}, ${ms(median(of(name, 'cpu')))} of processor`,
    )
  }
  for (const [part, by] of [
    ['wall', 'by the clock'],
    ['cpu', 'by the processor'],
  ] as const) {
    verdict(
      `start, warm: the daemon to Koa alone as installed, ${by}`,
      ratio(of('daemon', part), of('modules', part)),
      { most: 1.75, as: x },
    )
    verdict(`start, warm: the daemon to Koa alone, bundled too, ${by}`, ratio(of('daemon', part), of('koa', part)), {
      most: 1.75,
      as: x,
    })
  }
  verdict('start, warm: ready', median(of('daemon', 'wall')), { most: 400, as: ms })
}

const cold = async (main: string, file: string): Promise<void> => {
  const programs = {
    bare: baseline(file, 'bare', NEVER_COMPILED),
    koa: baseline(file, 'koa', NEVER_COMPILED),
    daemon: daemon(main, NEVER_COMPILED),
  }
  const never = await compare(programs, COLD_ROUNDS)
  print(
    'start, nothing compiled: node:http, Koa alone',
    `${ms(median(never.of('bare', 'wall')))}, ${ms(median(never.of('koa', 'wall')))}`,
  )
  print(
    'start, nothing compiled: the daemon',
    ms(median(never.of('daemon', 'wall'))),
    `${x(ratio(never.of('daemon', 'wall'), never.of('koa', 'wall')))} of Koa alone`,
  )
  const warmed = { bare: baseline(file, 'bare'), koa: baseline(file, 'koa'), daemon: daemon(main) }
  await keepCompiled(Object.values(warmed))
  const files = [
    ...filesBelow(join(root, 'bundle')),
    ...filesBelow(join(PACKAGE, 'node_modules', 'sqlite3', 'build', 'Release')),
    ...filesBelow(join(PACKAGE, 'manifests')),
    file,
  ]
  const disk = await compare(warmed, COLD_ROUNDS, () => forget([...files, ...filesBelow(top)]))
  print(
    'start, files not in memory: node:http, Koa alone',
    `${ms(median(disk.of('bare', 'wall')))}, ${ms(median(disk.of('koa', 'wall')))}`,
    'Node itself stays in memory',
  )
  print(
    'start, files not in memory: the daemon',
    ms(median(disk.of('daemon', 'wall'))),
    `${x(ratio(disk.of('daemon', 'wall'), disk.of('koa', 'wall')))} of Koa alone`,
  )
  verdict('start, files not in memory: ready', median(disk.of('daemon', 'wall')), { most: 400, as: ms })
}

const idle = async (main: string): Promise<void> => {
  const unbundled = join(root, 'test', 'bench', 'start-baseline.js')
  const programs = { bare: baseline(unbundled, 'bare'), koa: baseline(unbundled, 'koa'), daemon: daemon(main) }
  await keepCompiled(Object.values(programs))
  const { of } = await compare(programs, quick ? 1 : 5, () => {}, IDLE_MS)
  for (const [name, shown] of [
    ['bare', 'node:http (baseline)'],
    ['koa', 'Koa alone (baseline)'],
    ['daemon', 'the daemon'],
  ] as const) {
    print(
      `idle memory: ${shown}`,
      mib(median(of(name, 'rss'))),
      `${mib(median(of(name, 'pss')))} with shared pages divided`,
    )
  }
  verdict('idle memory: the daemon to Koa alone', ratio(of('daemon', 'rss'), of('koa', 'rss')), { most: 1.3, as: x })
  print('idle memory: the same with shared pages divided', x(ratio(of('daemon', 'pss'), of('koa', 'pss'))))
  verdict('idle memory: resident', median(of('daemon', 'rss')), { most: 150 * 1024 * 1024, as: mib })
}

/** Measures what each group adds to a start, in the order of starting: each needs the groups before it. */
const groups = async (): Promise<void> => {
  const all = inOrder(readManifests(join(PACKAGE, 'manifests'))).map(({ name }) => name)
  const names = quick ? all.slice(0, 4) : all
  const upTo = (count: number) =>
    withGroups(`groups-${count}`, file => names.slice(0, count).some(name => file === `${name}.json`))
  const programs = Object.fromEntries(['', ...names].map((name, count) => [name, upTo(count)]))
  await keepCompiled(Object.values(programs))
  const { of } = await compare(programs, ROUNDS)
  const last = names.at(-1)!
  const added = (part: 'wall' | 'cpu', name: string, before: string) =>
    median(of(name, part).map((time, round) => time - of(before, part)[round]!))
  print('start: with no group', ms(median(of('', 'wall'))), `${ms(median(of('', 'cpu')))} of processor`)
  // By the processor, because elapsed time on a shared machine varies by more than a few milliseconds.
  for (const [at, name] of names.entries())
    print(
      `start: the group ${name} adds`,
      ms(added('cpu', name, names[at - 1] ?? '')),
      `by the clock ${ms(added('wall', name, names[at - 1] ?? ''))}`,
    )
  verdict(`start: a plugin, the mean of ${names.length}, by the processor`, added('cpu', last, '') / names.length, {
    most: 1.5,
    as: time => `${time.toFixed(2)} ms`,
  })
}

/** Measures how much later a start is ready with many conversations than with none. */
const conversations = async (): Promise<void> => {
  const sizes = quick ? [0, 20] : [0, 1_000, 10_000]
  const programs: { [size: string]: Program } = {}
  for (const size of sizes) {
    const state = join(top, `conversations-${size}`)
    const ran = await seedConversations(state, size)
    programs[size] = {
      args: [
        ...[join(root, 'bundle', 'kernel', 'main.js'), '--json', '--port', '0'],
        ...['--workspace', ran.workspace, '--data', ran.data],
      ],
      env: { XDG_STATE_HOME: state },
    }
  }
  await keepCompiled(Object.values(programs))
  for (const [end, shown] of [
    ['SIGTERM', 'after a stop'],
    ['SIGKILL', 'after a kill'],
  ] as const) {
    const { of } = await compare(programs, ROUNDS, () => {}, 0, end)
    const later = (size: number, part: 'wall' | 'cpu') =>
      median(of(`${size}`, part).map((time, round) => time - of('0', part)[round]!))
    print(`start ${shown}: ready with no conversation`, ms(median(of('0', 'wall'))))
    for (const size of sizes.slice(1)) {
      const what = `start ${shown}: ready later with ${size.toLocaleString('en')} conversations`
      verdict(what, later(size, 'wall'), { most: 50, as: ms })
      print(`${what}, by the processor`, ms(later(size, 'cpu')))
    }
  }
}

try {
  makeWorkspace(workspace)
  writeFileSync(join(top, 'package.json'), '{}')
  const main = join(root, 'bundle', 'kernel', 'main.js')
  const file = await bundled()
  const parts = {
    warm: () => warm(main, file),
    cold: () => cold(main, file),
    idle: () => idle(main),
    groups,
    growth,
    conversations,
  }
  for (const [name, part] of Object.entries(parts)) if (asked.length === 0 || asked.includes(name)) await part()
} finally {
  rmSync(top, { recursive: true, force: true })
}
