import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import { openStore } from '../../../kernel/storage/store.js'
import type { Conversation } from '../../../plugins/agent/contract.js'
import type { AgentStatus } from '../../../plugins/agents/contract.js'
import { inGit, root } from '../daemon.js'

/** The state of a conversation's work, and the fields of its card. */
export interface Seeded {
  readonly id: string
  readonly status: AgentStatus
  /** The paths that its branch changed. */
  readonly paths: readonly string[]
}

/** A fleet on the disk, as earlier daemons left it. */
export interface Fleet {
  readonly workspace: string
  readonly data: string
  readonly live: readonly Seeded[]
  readonly archived: readonly string[]
}

/** An hour ago: older conversations are archived automatically. */
const NOW = Date.now() - 3_600_000
/** The states of the work of conversations, assigned in rotation. */
const KINDS = ['ready', 'ready', 'merged', 'picked', 'none', 'shared', 'diverged', 'failed', 'held', 'ready'] as const
/** The state of the work of a conversation. */
export type Kind = (typeof KINDS)[number]

const STATUS: { readonly [kind in Kind]: AgentStatus } = {
  ready: 'ready',
  merged: 'landed',
  picked: 'landed',
  none: 'idle',
  shared: 'idle',
  diverged: 'ready',
  failed: 'error',
  held: 'landed',
}

const lines = (seed: string): string =>
  Array.from({ length: 40 }, (_, line) => `export const v${line} = '${seed}'\n`).join('')
const pathOf = (file: number): string => `packages/p${file % 20}/src/file-${file}.ts`
const data = (text: string): string => `data ${Buffer.byteLength(text)}\n${text}\n`

/** A stream for `git fast-import`: commits by mark, the files they change, and the targets of refs. */
class Import {
  readonly #stream: string[] = []
  #marks = 0

  commit(files: { readonly [path: string]: string }, from: number | undefined, merge?: number): number {
    const mark = ++this.#marks
    this.#stream.push(
      `commit refs/import\nmark :${mark}\ncommitter Ada <ada@example.org> ${1_700_000_000 + mark} +0000\n`,
      data(`commit ${mark}`),
      ...(from === undefined ? [] : [`from :${from}\n`]),
      ...(merge === undefined ? [] : [`merge :${merge}\n`]),
      ...Object.entries(files).map(([path, text]) => `M 100644 inline ${path}\n${data(text)}`),
      '\n',
    )
    return mark
  }

  ref(name: string, mark: number): void {
    this.#stream.push(`reset ${name}\nfrom :${mark}\n\n`)
  }

  /** Imports everything, and returns the commits by mark. */
  run(workspace: string): string[] {
    const marks = join(workspace, '.git', 'marks')
    execFileSync('git', ['fast-import', '--quiet', `--export-marks=${marks}`], {
      cwd: workspace,
      input: this.#stream.join(''),
    })
    inGit(workspace, 'update-ref', '-d', 'refs/import')
    const commits: string[] = []
    for (const line of readFileSync(marks, 'utf8').trim().split('\n')) {
      const [mark = '', commit = ''] = line.split(' ')
      commits[Number(mark.slice(1))] = commit
    }
    return commits
  }
}

/** A conversation's commits, by mark. */
interface Planned {
  readonly kind: Kind
  readonly base: number
  readonly tip: number
  /** The files that a conversation changes, with their new content. */
  readonly work: { readonly [path: string]: string }
}

/** Plans the commits: of the main line, of each conversation, and of the main line again. */
const planned = (
  stream: Import,
  kinds: readonly Kind[],
  count: number,
  archived: number,
): { plans: Planned[]; head: number } => {
  // A file for each, so that landings do not overwrite each other.
  const files = Array.from({ length: count + archived }, (_, file) => [pathOf(file), lines(`first ${file}`)] as const)
  const first = stream.commit(Object.fromEntries(files), undefined)
  const base = stream.commit({ 'README.md': '# fleet\n' }, first)
  const plans = Array.from({ length: count + archived }, (_, at): Planned => {
    const kind = at < count ? kinds[at % kinds.length]! : 'ready'
    if (kind === 'none' || kind === 'shared') return { kind, base, tip: base, work: {} }
    const work = {
      [`work/${kind}-${at}/notes.md`]: `# notes of ${at}\n`,
      [pathOf(at)]: lines(`first ${at}`).replace("v3 = 'first", "v3 = 'agent"),
    }
    const begun = stream.commit({ [`work/${kind}-${at}/notes.md`]: '# notes\n' }, base)
    return { kind, base, tip: stream.commit(work, begun), work }
  })
  let head = base
  for (const [at, { kind, tip, work }] of plans.entries()) {
    if (kind === 'merged') head = stream.commit({ [`work/${kind}-${at}/notes.md`]: `# notes of ${at}\n` }, head, tip)
    if (kind === 'picked' || kind === 'held')
      head = stream.commit({ [`work/${kind}-${at}/notes.md`]: work[`work/${kind}-${at}/notes.md`]! }, head)
    if (kind === 'diverged') head = stream.commit({ [`work/${kind}-${at}/notes.md`]: `# others of ${at}\n` }, head)
  }
  const last: { [path: string]: string } = {}
  for (const { kind, work } of plans) if (kind === 'picked' || kind === 'held') Object.assign(last, work)
  return { plans, head: stream.commit(last, head) }
}

const conversationOf = (
  at: number,
  id: string,
  { kind, base, tip }: Planned,
  commits: readonly string[],
  archivedAt?: number,
): Conversation => ({
  id,
  title: `conversation ${at}`,
  titleBy: 'prompt',
  createdAt: NOW,
  updatedAt: NOW + at,
  openedBy: 'ada@example.org',
  lastBy: 'ada@example.org',
  provider: 'script',
  harness: 'native',
  lastRun: `r-${at}`,
  lastEnd: kind === 'failed' ? 'failed' : 'completed',
  ...(kind === 'failed' && { failure: 'the provider closed the connection' }),
  ...(archivedAt !== undefined && { archivedAt }),
  repos:
    kind === 'shared'
      ? []
      : [
          {
            repo: 'root',
            base: commits[base]!,
            ...(kind === 'held' && { landedTip: commits[tip]!, landedHead: commits[base]!, landedAt: NOW + at }),
          },
        ],
  ...(kind !== 'shared' && { branch: `agent/${id}` }),
  totals: { turns: 1, toolUses: 2, helpers: 0, costUsd: 0.01, inputTokens: 100, outputTokens: 50 },
})

/** The transcript of a conversation: every tenth mentions herons, each mentions itself, all share a few words. */
const talkOf = (at: number): { role: 'user' | 'assistant'; text: string }[] => [
  { role: 'user', text: `please look at part ${at} of the fleet${at % 10 === 0 ? ', where the heron stands' : ''}` },
  ...Array.from({ length: 6 }, (_, row) => ({
    role: 'assistant' as const,
    text: `row ${row} of answer ${at}: ${'the words of an ordinary answer. '.repeat(8)}`,
  })),
]

/**
 * A workspace with the branches of this number of conversations, and the data folder of a daemon that ran
 * them.
 *
 * The records are written with the daemon's own storage.
 */
export const makeFleet = async (folder: string, count: number, kinds: readonly Kind[] = KINDS): Promise<Fleet> => {
  const archived = 20
  const workspace = join(folder, 'workspace')
  const dataFolder = join(folder, 'data')
  for (const made of [workspace, dataFolder]) mkdirSync(made, { recursive: true, mode: 0o700 })
  inGit(workspace, 'init', '-q', '-b', 'main')
  const stream = new Import()
  const { plans, head } = planned(stream, kinds, count, archived)
  const idOf = (at: number) => `c-${String(at).padStart(4, '0')}`
  stream.ref('refs/heads/main', head)
  for (const [at, { kind, tip }] of plans.entries()) {
    if (kind !== 'shared')
      stream.ref(at < count ? `refs/heads/agent/${idOf(at)}` : `refs/sandbox/parked/${idOf(at)}`, tip)
  }
  const commits = stream.run(workspace)
  inGit(workspace, 'reset', '-q', '--hard')
  const store = openStore(`sqlite://${join(dataFolder, 'store.sqlite')}`)
  const journals = new JournalStore(join(dataFolder, 'journals'))
  for (const [at, plan] of plans.entries()) {
    const id = idOf(at)
    await store.of('agent').set(`c/${id}`, conversationOf(at, id, plan, commits, at < count ? undefined : NOW + at))
    await store.of('agents').set(id, { committed: `r-${at}` })
    await journals.append(`agent/transcripts/${id}`, [{ run: `r-${at}`, rows: talkOf(at) }])
  }
  await Promise.all([store.close(), journals.shutdown()])
  const seeded = plans.map(({ kind, work }, at): Seeded => ({
    id: idOf(at),
    status: STATUS[kind],
    paths: Object.keys(work),
  }))
  return {
    workspace,
    data: dataFolder,
    live: seeded.slice(0, count),
    archived: seeded.slice(count).map(({ id }) => id),
  }
}

/** Counts the processes of a daemon: the variables to start it with, and the command lines since the last query. */
export const spawnsIn = (folder: string): { env: { [name: string]: string }; taken: () => string[][] } => {
  const file = join(folder, 'spawns')
  writeFileSync(file, '')
  let seen = 0
  return {
    env: {
      SPAWNS: file,
      NODE_OPTIONS: `--import=${pathToFileURL(join(root, 'test', 'support', 'spawn-count.js')).href}`,
    },
    taken: () => {
      const all = readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .filter(line => line !== '')
      const since = all.slice(seen)
      seen = all.length
      return since.map(line => JSON.parse(line) as string[])
    },
  }
}
