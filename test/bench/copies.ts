// Measures private copies against git's own worktrees: `node dist/test/bench/copies.js [files …]`. Only the ratios
// count.
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { inGit, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { framesOf, runTurn } from '../support/turns.js'
import { makeRepository, nameOf, text } from './large-repository.js'
import { asked, inTurns, median, ms, print, quick, timed, verdict } from './measure.js'

const SIZES = asked.length > 0 ? asked.map(Number) : quick ? [300] : [6_700, 50_000]
/** The targets: the time until a copy is visible, and of a discard, in ms. */
const TARGETS: { readonly [files: number]: readonly [visible: number, discard: number] } = {
  6_700: [30, 20],
  50_000: [100, 20],
}
const ROUNDS = quick ? 1 : 5

const top = realpathSync(mkdtempSync(join(tmpdir(), 'bench-copies-')))
const endings: (() => unknown)[] = []

const row = (what: string, times: readonly number[], against: number): void =>
  print(what, ms(median(times)), `best ${ms(Math.min(...times))}, ${(median(times) / against).toFixed(3)}x`)
/** Prints a row whose figure has a target at this size. */
const wanted = (
  what: string,
  files: number,
  times: readonly number[],
  against: number,
  most: number | undefined,
): void => {
  row(what, times, against)
  if (most !== undefined) verdict(`copies: ${what}, ${files} files`, median(times), { most, as: ms })
}

/** The times of git itself for the same. */
const baselines = async (workspace: string) => {
  const copy = join(top, 'baseline')
  const times = { add: [] as number[], remove: [] as number[], delete: [] as number[] }
  for (let round = 0; round < (quick ? 1 : 3); round++) {
    times.add.push(await timed(() => inGit(workspace, 'worktree', 'add', '-q', '-b', `baseline-${round}`, copy)))
    times.remove.push(await timed(() => inGit(workspace, 'worktree', 'remove', copy)))
    inGit(workspace, 'worktree', 'add', '-q', '--force', copy, `baseline-${round}`)
    times.delete.push(await timed(() => execFileSync('rm', ['-rf', copy])))
    inGit(workspace, 'worktree', 'prune')
    inGit(workspace, 'branch', '-q', '-D', `baseline-${round}`)
  }
  return { add: median(times.add), remove: median(times.remove), delete: median(times.delete) }
}

const start = async (workspace: string, name: string): Promise<RunningDaemon> => {
  const data = join(top, name)
  mkdirSync(data, { mode: 0o700 })
  return spawnDaemon({ teardown: ending => void endings.push(ending as () => unknown) }, { workspace, data })
}

/** Waits until no background work runs: the warm copy is at HEAD and the trash is empty. */
const quiet = async ({ data, workspace }: RunningDaemon): Promise<void> => {
  const head = inGit(workspace, 'rev-parse', 'HEAD').trim()
  const ready = () => {
    const note = join(data, 'agent', 'made', '.spare.json')
    const trash = join(data, 'agent', 'trash')
    if (existsSync(trash) && readdirSync(trash).length > 0) return false
    return (
      existsSync(note)
      && (JSON.parse(readFileSync(note, 'utf8')) as { repos: { head: string }[] }).repos[0]?.head === head
    )
  }
  for (let waited = 0; !ready() && waited < 20_000; waited += 50) await setTimeout(50)
  await setTimeout(quick ? 0 : 300)
}

let conversations = 0
/** Runs a conversation's first turn; returns the time until the frame of its copy, and until its agent's first text. */
const firstTurn = async ({ client }: RunningDaemon) => {
  const conversationId = `c-${++conversations}`
  const started = performance.now()
  await client.call('POST /agent', { conversationId, prompt: 'say hello', isolated: true })
  const frames = framesOf(client, conversationId)
  await frames.until(({ kind }) => kind === 'worktree')
  const told = performance.now() - started
  await frames.until(({ kind }) => kind === 'delta')
  const spoken = performance.now() - started
  await frames.all()
  return { conversationId, told, spoken }
}

const many = async <T>(rounds: number, work: (round: number) => Promise<T>): Promise<T[]> => {
  const results: T[] = []
  for (let round = 0; round < rounds; round++) results.push(await work(round))
  return results
}

const change = (workspace: string, files: number, seed: number): void => {
  for (let file = 0; file < files; file++) writeFileSync(join(workspace, nameOf(file)), `${text(file)}// ${seed}\n`)
  inGit(workspace, 'commit', '-qam', `change ${files}`)
}

/** Measures reading the changes of a conversation, and one file of it, against git. */
const reads = async ({ client, data, workspace }: RunningDaemon, id: string): Promise<void> => {
  const path = nameOf(0)
  await runTurn(client, id, `write ${path}\n| export const changed = true\nwrite new.txt\n| new`)
  const { repos } = (await client.call('GET /agents/{id}/diff', { id })) as { repos: readonly { repo: string }[] }
  if (repos.length !== 1) throw new Error(`expected the work of one repository, found ${repos.length}`)
  const times = await inTurns(
    {
      status: () => timed(() => inGit(join(data, 'agent/checkouts', id), 'status', '--porcelain')),
      diff: () => timed(() => client.call('GET /agents/{id}/diff', { id })),
      show: () => timed(() => inGit(workspace, 'show', `HEAD:${path}`)),
      file: () => timed(() => client.call('GET /agents/{id}/{repo}/file-diff', { id, repo: repos[0]!.repo, path })),
      info: () => timed(() => client.call('GET /info')),
    },
    quick ? 1 : 15,
  )
  row('git status in a private copy (baseline)', times.status, median(times.status))
  row('what a conversation changed (GET /agents/{id}/diff)', times.diff, median(times.status))
  row('git show of one file (baseline)', times.show, median(times.show))
  row('both sides of one file (GET …/file-diff)', times.file, median(times.show))
  row('GET /info: what any call takes meanwhile (baseline)', times.info, median(times.show))
}

/** Measures a turn that writes one file, in a private copy and without one, and git's own status. */
const edits = async ({ client, workspace }: RunningDaemon): Promise<void> => {
  let edited = 0
  const turn = async (id: string, isolated: boolean) => {
    const prompt = `write ${nameOf(isolated ? 1 : 2)}\n| export const edited = ${++edited}`
    return timed(() => runTurn(client, id, prompt, { isolated }))
  }
  await turn('edits-here', false)
  await turn('edits-apart', true)
  const times = await inTurns(
    {
      status: () => timed(() => inGit(workspace, 'status', '--porcelain')),
      here: () => turn('edits-here', false),
      apart: () => turn('edits-apart', true),
    },
    quick ? 1 : 9,
  )
  row('git status of the workspace (baseline)', times.status, median(times.status))
  row('a turn that writes one file, without a private copy', times.here, median(times.status))
  row('the same turn in a private copy', times.apart, median(times.here))
  row(
    'what the copy adds to it',
    times.apart.map((time, at) => time - times.here[at]!),
    median(times.status),
  )
}

const measure = async (files: number): Promise<void> => {
  const workspace = join(top, `work-${files}`)
  makeRepository(workspace, files)
  const git = await baselines(workspace)
  const [visible, discard] = TARGETS[files] ?? []
  console.log(
    `${files} files: git worktree add ${ms(git.add)}, git worktree remove ${ms(git.remove)}, rm -rf ${ms(git.delete)}`,
  )

  const cold = await many(quick ? 1 : 2, async round => {
    const daemon = await start(workspace, `cold-${files}-${round}`)
    await daemon.client.call('GET /agents')
    const turn = await firstTurn(daemon)
    await daemon.client.call('POST /agents/{id}/discard', { id: turn.conversationId })
    await quiet(daemon)
    await daemon.terminate()
    rmSync(join(workspace, '.git', 'worktrees'), { recursive: true, force: true })
    return turn
  })
  row(
    'first turn without a spare, until the agent speaks',
    cold.map(({ spoken }) => spoken),
    git.add,
  )

  const daemon = await start(workspace, `warm-${files}`)
  const first = await firstTurn(daemon)
  await daemon.client.call('POST /agents/{id}/discard', { id: first.conversationId })
  const made: string[] = []
  const turns = async (before: (round: number) => void | Promise<void>) =>
    many(ROUNDS, async round => {
      await quiet(daemon)
      await before(round)
      const turn = await firstTurn(daemon)
      made.push(turn.conversationId)
      return turn
    })
  const shown = (what: string, found: readonly { told: number; spoken: number }[]) => {
    row(
      `${what}, worktree told`,
      found.map(({ told }) => told),
      git.add,
    )
    row(
      `${what}, until the agent speaks`,
      found.map(({ spoken }) => spoken),
      git.add,
    )
  }
  const spare = await turns(() => {})
  wanted(
    'private copy visible from the spare',
    files,
    spare.map(({ told }) => told),
    git.add,
    visible,
  )
  row(
    'first turn from the spare, until the agent speaks',
    spare.map(({ spoken }) => spoken),
    git.add,
  )
  shown('HEAD moved by 1 file just before', await turns(round => change(workspace, 1, round)))
  shown('HEAD moved by 100 files just before', await turns(round => change(workspace, 100, round)))
  shown(
    'HEAD moved by 100 files, spare had time to follow',
    await turns(async round => {
      change(workspace, 100, 100 + round)
      await quiet(daemon)
    }),
  )

  const discarded = async (id: string) => timed(() => daemon.client.call('POST /agents/{id}/discard', { id }))
  const calm = await many(ROUNDS, async () => {
    await quiet(daemon)
    return discarded(made.pop()!)
  })
  wanted('discard', files, calm, git.remove, discard)
  row('discard against rm -rf', calm, git.delete)
  const busy = await many(quick ? 1 : 3, async () => {
    await quiet(daemon)
    return discarded((await firstTurn(daemon)).conversationId)
  })
  row('discard right after the turn, the next spare being made', busy, git.remove)
  await quiet(daemon)
  await reads(daemon, made[0]!)
  await edits(daemon)
  await daemon.terminate()
}

try {
  for (const files of SIZES) await measure(files)
} finally {
  for (const ending of endings) await ending()
  rmSync(top, { recursive: true, force: true })
}
process.exit(0)
