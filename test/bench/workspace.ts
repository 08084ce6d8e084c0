// Search, tree and ZIP of a workspace against programs that do the same, in the same run, and the share of fixed
// questions that the search answers within its first five files: `node dist/test/bench/workspace.js`.
import { execFileSync, spawn } from 'node:child_process'
import { rgPath } from '@vscode/ripgrep'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnDaemon } from '../support/daemon.js'
import { inTurns, median, ms, print, quick, ratio, timed, verdict, x } from './measure.js'
import { OTHER_QUESTIONS, PARAPHRASED, QUESTIONS, type SearchQuestion } from './search-questions.js'

const ROUNDS = quick ? 1 : 9
const FIRST = 5
/** What is measured: all of it, or a part. */
const FOLDERS = quick ? ['sdk'] : ['plugins', 'sdk', 'kernel', 'openapi']

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-workspace-')))
const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
const teardowns: (() => unknown)[] = []
mkdirSync(data, { recursive: true })
if (quick) execFileSync('git', ['init', '-q', workspace])
else execFileSync('git', ['clone', '-q', '--no-hardlinks', process.cwd(), workspace])
rmSync(join(workspace, 'test/bench/search-questions.ts'), { force: true })
// Includes uncommitted files.
execFileSync('sh', [
  '-c',
  'to=$1; shift; git ls-files -co --exclude-standard -z "$@" | tar --null -T - -cf - | tar -xf - -C "$to"',
  'copy',
  workspace,
  ...FOLDERS,
])

const daemon = await spawnDaemon({ teardown: (work: () => unknown) => void teardowns.push(work) } as never, {
  workspace,
  data,
})
const { client } = daemon

const started = performance.now()
let state = await client.call('GET /workspace/search', { query: 'refuse', mode: 'def' })
while (state.freshness.state === 'building') {
  await new Promise(again => setTimeout(again, 20))
  state = await client.call('GET /workspace/search', { query: 'refuse', mode: 'def' })
}
const indexed = performance.now() - started
print('workspace: the first index of this repository', ms(indexed))
while ((await client.call('GET /workspace/search', { query: 'what files are about' })).features.includes('semantic'))
  await new Promise(again => setTimeout(again, 50))
print('workspace: learning what files are about, to the first index', x((performance.now() - started) / indexed - 1))

const found = new Map<string, boolean[]>()
for (const [questions, part] of [
  [QUESTIONS, ''],
  [OTHER_QUESTIONS, ' about another part'],
  [PARAPHRASED, ' in other words'],
] as const)
  for (const { mode, query, answer } of questions.filter(({ answer }) => FOLDERS.includes(answer.split('/')[0]!))) {
    const { groups } = await client.call('GET /workspace/search', { query, mode, limit: FIRST })
    const hit = groups.some(({ path }) => path === answer)
    found.set(mode + part, [...(found.get(mode + part) ?? []), hit])
    if (!hit) console.log(`    not among the first ${FIRST}: ${mode} ${query} (${answer})`)
  }
for (const [mode, hits] of found) {
  const part = hits.filter(Boolean).length / hits.length
  verdict(`workspace: recall@${FIRST} of ${hits.length} questions in mode ${mode}`, part, {
    // Nothing but the workspace's own text says which words are alike.
    least: mode.endsWith('in other words') ? 0.6 : 0.8,
    as: figure => figure.toFixed(2),
  })
}

const bare =
  (program: string, ...args: string[]) =>
  () =>
    timed(async () => {
      const child = spawn(program, args, { cwd: workspace, stdio: ['ignore', 'pipe', 'inherit'] })
      child.stdout.resume()
      await once(child, 'close')
    })
const search = (query: string, mode: SearchQuestion['mode']) => () =>
  timed(() => client.call('GET /workspace/search', { query, mode }))
const zipped = async (): Promise<number> =>
  timed(async () => {
    const { ticket } = await client.call('POST /workspace/download-ticket', { paths: [FOLDERS[0]!] })
    await (await fetch(`${daemon.url}/workspace/download?ticket=${ticket}`)).arrayBuffer()
  })
const times = await inTurns(
  {
    rare: search('MOST_KEPT_PATHS', 'find'),
    'bare rare': bare(rgPath, '--hidden', '-g', '!.git', '-n', 'MOST_KEPT_PATHS'),
    common: search('const', 'find'),
    'bare common': bare(rgPath, '--hidden', '-g', '!.git', '-n', 'const'),
    def: search('openPath', 'def'),
    words: search('count changes of a tree in batches', 'q'),
    tree: () => timed(() => client.call('GET /workspace/tree', {})),
    'git ls-files': bare('git', 'ls-files', '-co', '--exclude-standard'),
    find: bare('find', '.', '-not', '-path', './.git/*'),
    zip: zipped,
    'bare zip': bare('zip', '-q', '-r', '-', FOLDERS[0]!),
  },
  ROUNDS,
)
for (const [name, values] of Object.entries(times)) print(`workspace: ${name}`, ms(median(values)))
verdict('workspace: search of a rare text to rg alone', ratio(times.rare, times['bare rare']), { most: 3, as: x })
verdict('workspace: search of a common text to rg alone', ratio(times.common, times['bare common']), { most: 5, as: x })
verdict('workspace: a definition, from the index', median(times.def), { most: 20, as: ms })
verdict('workspace: tree to git ls-files', ratio(times.tree, times['git ls-files']), { most: 5, as: x })
verdict('workspace: tree to find', ratio(times.tree, times.find), { most: 10, as: x })
verdict('workspace: a ZIP to zip', ratio(times.zip, times['bare zip']), { most: 2, as: x })

// Each caller may search eight times at once.
const CLIENTS = quick ? 3 : 20
const tokens = await Promise.all(
  Array.from({ length: CLIENTS }, (_, at) =>
    client.call('POST /system/control/tokens', { label: `search ${at}`, scope: 'read' }),
  ),
)
const asked = ({ token }: { readonly token: string }, query: string) =>
  timed(async () => {
    const headers = { 'x-sandbox-control': token }
    const answer = await fetch(`${daemon.url}/workspace/search?mode=find&query=${query}`, { headers })
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
    await answer.text()
  })
const rare = bare(rgPath, '--hidden', '-g', '!.git', '-n', 'MOST_KEPT_PATHS')
const together = await inTurns(
  {
    searches: () => timed(() => Promise.all(tokens.map(token => asked(token, 'MOST_KEPT_PATHS')))),
    'bare searches': () => timed(() => Promise.all(tokens.map(rare))),
  },
  quick ? 1 : 5,
)
print(`workspace: ${CLIENTS} clients searching at once, until the last has its answer`, ms(median(together.searches)))
verdict(
  `workspace: ${CLIENTS} searches at once to ${CLIENTS} rg at once`,
  ratio(together.searches, together['bare searches']),
  { most: 3, as: x },
)
await Promise.all(teardowns.map(work => work()))
rmSync(folder, { recursive: true, force: true })
