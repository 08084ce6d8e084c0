import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { WallKind } from '../sdk/node/wall/wall.js'
import { hiding, shellTurn, walled } from './attack/support.js'
import { attach } from './plugins/system/terminals/terminals-support.js'
import { endTerminals, folderOf, inGit, makeWorkspace, root, spawnDaemon } from './support/daemon.js'
import { EVERY_CASE, spread } from './support/lists.js'
import { runTurn } from './support/turns.js'

const PACKAGE = realpathSync(join(root, '..'))
/** What the built program loads at run time from outside of its bundle, as far as it is used here. */
const LIBRARIES = ['sqlite3', 'bindings', 'file-uri-to-path', '@vscode', '@lydell', 'isomorphic-git']

/** A folder in a folder of the machine, gone after the test. */
const madeIn = (t: Test, folder: string): string => {
  const made = realpathSync(mkdtempSync(join(folder, 'places-')))
  t.teardown(() => rmSync(made, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  return made
}

const PLACES: { readonly [place: string]: (t: Test) => string } = {
  'below /tmp': t => madeIn(t, '/tmp'),
  'below /var/tmp': t => madeIn(t, '/var/tmp'),
  'below /dev/shm': t => madeIn(t, '/dev/shm'),
  'in a folder with blanks, quotes and other characters': t =>
    join(folderOf(t), ` a b 'c' "d" \`e\` $HOME $(f) \\n *?[g]{h} é 語 😀 #i %41 &j;k|l<m>n!`),
  'behind a link': t => {
    const folder = folderOf(t)
    mkdirSync(join(folder, 'real'))
    symlinkSync(join(folder, 'real'), join(folder, 'link'))
    return join(folder, 'link')
  },
}

const ROLES = ['workspace', 'data', 'program'] as const
type Role = (typeof ROLES)[number]

/** A copy of the built program; its main file. */
const copyProgram = (folder: string): string => {
  const copy = (path: string) =>
    existsSync(join(PACKAGE, path))
    && cpSync(join(PACKAGE, path), join(folder, path), { recursive: true, verbatimSymlinks: true })
  for (const path of ['package.json', 'manifests', 'dist/bundle']) copy(path)
  for (const name of LIBRARIES) copy(join('node_modules', name))
  return join(folder, 'dist/bundle/kernel/main.js')
}

const WORDS = ['write made.txt', '| by an agent', 'say done'].join('\n')

/** What stands behind a wall works there: turns in both trees, toolchains, an agent program, a terminal, a search. */
const works = async (t: Test, place: string, roles: readonly Role[], kind: WallKind): Promise<void> => {
  const [there, here] = [PLACES[place]!(t), folderOf(t)]
  // Node loads no program from a path with a backslash.
  const at = (role: Role) =>
    join(!roles.includes(role) ? here : role === 'program' ? there.replaceAll('\\', '') : there, role)
  const [workspace, data] = [at('workspace'), at('data')]
  makeWorkspace(workspace, { 'README.md': '# a needle\n' })
  t.teardown(() => endTerminals(data))
  mkdirSync(join(there, 'home/.local/bin'), { recursive: true })
  const home = realpathSync(join(there, 'home'))
  const bin = join(home, '.local/bin')
  writeFileSync(join(bin, 'installed-there'), '#!/bin/sh\necho it-runs\n', { mode: 0o755 })
  const daemon = await spawnDaemon(t, {
    workspace,
    data,
    env: { HOME: home, PATH: `${bin}:${process.env.PATH}` },
    ...(roles.includes('program') && { program: copyProgram(at('program')) }),
    ...(kind === 'unshare' && { starter: hiding('bwrap') }),
  })
  const { client } = daemon
  const shared = await shellTurn(client, 'shared', [
    'pwd -P',
    'echo of-a-turn > turn.txt && cat README.md',
    'git status --short',
    'installed-there',
  ])
  t.equal(shared[0], realpathSync(workspace))
  t.match(shared[1], 'needle')
  t.match(shared[2], /^\?\? turn\.txt$/m)
  t.equal(shared[3], 'it-runs')
  t.equal(readFileSync(join(workspace, 'turn.txt'), 'utf8'), 'of-a-turn\n')
  const copied = await shellTurn(client, 'copied', ['pwd -P', 'echo two >> README.md && git diff --stat | tail -1'], {
    isolated: true,
  })
  t.equal(copied[0], realpathSync(workspace))
  t.match(copied[1], '1 insertion')
  t.match(await client.call('POST /agents/{id}/land', { id: 'copied' }), { landed: true })
  t.equal(readFileSync(join(workspace, 'README.md'), 'utf8'), '# a needle\ntwo\n')
  const frames = await runTurn(client, 'program', WORDS, { harness: 'vendor-code' })
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' }, JSON.stringify(frames.slice(-3)))
  t.equal(readFileSync(join(workspace, 'made.txt'), 'utf8'), 'by an agent\n')
  t.match(JSON.stringify(await client.call('GET /workspace/search', { query: 'needle', mode: 'find' })), 'README.md')
  await client.call('POST /system/terminals', { name: 'web-a' })
  const terminal = await attach(t, daemon, 'web-a', '&cols=200')
  terminal.type('clear; cat made.txt; echo all-"seen"\r')
  t.match(await terminal.shows(/all-seen/), 'by an agent')
  t.equal(inGit(workspace, 'status', '--short', 'README.md').trim(), 'M README.md')
}

t.setTimeout(240_000)
t.jobs = 2
/** Always in one test; `EVERY_CASE` adds all places, and in two of them each role alone. */
const TOGETHER = ['below /tmp', 'in a folder with blanks, quotes and other characters', 'behind a link']
const ALONE = spread(Object.keys(PLACES), 0, 2)
for (const place of EVERY_CASE ? Object.keys(PLACES) : TOGETHER) {
  const each = ALONE.includes(place) ? ROLES.map(role => [role]) : []
  for (const roles of [ROLES, ...each])
    t.test(`${roles.join(', ')} ${place}`, { ...walled(), buffered: true }, t => works(t, place, roles, 'bwrap'))
}
for (const place of EVERY_CASE ? spread(Object.keys(PLACES), 0, 3) : ['below /dev/shm'])
  t.test(
    `everything ${place}, behind the wall without bubblewrap`,
    {
      ...walled(),
      buffered: true,
      ...(process.getuid?.() !== 0 && { skip: 'only the superuser can hide programs' }),
    },
    t => works(t, place, ROLES, 'unshare'),
  )
