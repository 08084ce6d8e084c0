import '../../support/power.js'
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stageBundle, sweepCutOff } from '../../../plugins/system/bundles/restoring.js'
import { carryOut, MOVES } from '../../../sdk/node/files/moves.js'
import { treeOf } from '../../plugins/agents/support.js'
import { made } from '../../plugins/system/bundles/bundles-made.js'
import { cutEverywhere } from '../../support/cuts.js'
import { folderOf, inGit } from '../../support/daemon.js'
import { canCut } from '../../support/power.js'

const options = { skip: canCut ? false : 'this system shows no descriptors as paths' }

interface Files {
  readonly [path: string]: string
}
/** The files of a sandbox and its repository, the data returned to its groups, and the previous files kept. */
interface Held {
  readonly workspace: Files
  readonly git: Files
  readonly returned: Files
  readonly kept: Files
}
type RestoreHost = Parameters<typeof stageBundle>[0]

const filesOf = (folder: string, picked = (_path: string) => true): Files => {
  const found = existsSync(folder) ? Object.entries(treeOf(folder)) : []
  const files = found.filter(([path, what]) => what !== 'folder' && picked(path)).toSorted()
  return Object.fromEntries(files.map(([path, what]) => [path, what.length > 80 ? hash('sha256', what) : what]))
}

const heldIn = (folder: string): Held => {
  const workspace = join(folder, 'workspace')
  const returned = filesOf(join(folder, 'data/returned'))
  const kept = {
    ...filesOf(join(workspace, '.sandbox/restored'), path => path.includes('/before/')),
    ...filesOf(join(folder, 'data/system/restore-points')),
  }
  return {
    workspace: filesOf(workspace, path => !path.startsWith('.sandbox/')),
    git: filesOf(join(workspace, '.git')),
    returned,
    // Only a committed restore promises to keep the previous files.
    kept: Object.keys(returned).length > 0 ? kept : {},
  }
}

/** A host whose group agent returns one conversation. */
const hostAt = (folder: string): RestoreHost => {
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  const collect = async (point: string) => {
    if (point === 'bundle.takers') return [['agent']]
    const path = join(data, 'agent', 'other.json')
    writeFileSync(path, 'other')
    return [{ group: 'agent', version: 1, files: [{ name: 'other.json', path }] }]
  }
  const place = { workspace, data, folder: join(data, 'system') }
  return { place, collect, serves: async () => false, signal: new AbortController().signal } as unknown as RestoreHost
}

/** A sandbox with files, and a bundle of another sandbox with one commit. */
const sandboxIn = async (folder: string, elsewhere: string): Promise<void> => {
  for (const name of ['workspace/old', 'data/system', 'data/agent']) mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, 'workspace/a.txt'), 'changed\n')
  writeFileSync(join(folder, 'workspace/old/stray.txt'), 'stray\n')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'a.txt'), 'packed\n')
  inGit(elsewhere, 'init', '-q', '--initial-branch=main')
  inGit(elsewhere, 'add', '.')
  inGit(elsewhere, 'commit', '-q', '-m', 'packed')
  inGit(elsewhere, 'bundle', 'create', '-q', 'history', '--all')
  const history = 'history/001.bundle'
  const entries = [
    { path: 'state/agent/one.json', text: 'one' },
    { path: history, text: readFileSync(join(elsewhere, 'history')) },
    { path: 'workspace/a.txt', text: 'packed\n' },
    { path: 'workspace/deep/er/b.txt', text: 'b\n' },
    { path: 'workspace/deep/link', link: '../a.txt' },
  ]
  await made(join(folder, 'workspace/backup'), entries, {
    groups: [{ group: 'agent', version: 1 }],
    repositories: [{ repo: 'root', history, head: 'refs/heads/main', remotes: [], branches: [] }],
  })
}

t.test('a power cut during a restore or the start that completes it', options, async t => {
  const top = folderOf(t)
  const disk = join(top, 'disk')
  await sandboxIn(disk, join(top, 'elsewhere'))
  const [before, after] = [heldIn(disk), {} as Held]
  const plan = join('data', MOVES)
  await cutEverywhere<Held>(t, {
    at: disk,
    first: before,
    drive: async (folder, promised) => {
      await promised.step(after, () => stageBundle(hostAt(folder), { path: 'backup' }))
      await promised.step(after, () => carryOut(join(folder, plan)))
      Object.assign(after, heldIn(folder))
    },
    found: async folder => {
      const path = join(folder, plan)
      // The plan contains absolute paths, and this is another folder.
      if (existsSync(path)) writeFileSync(path, readFileSync(path, 'utf8').replaceAll(disk, folder))
      await carryOut(path)
      await sweepCutOff(hostAt(folder))
      return heldIn(folder)
    },
  })
  t.same(Object.keys(after.workspace), ['a.txt', 'deep/er/b.txt', 'deep/link'])
  t.equal(inGit(join(disk, 'workspace'), 'status', '--porcelain', 'a.txt'), '')
  t.same(after.returned, { 'agent/one.json': 'file one' })
  const kept = Object.keys(after.kept).map(path => path.replace(/^[^/]+\//, ''))
  t.same(kept, ['before/a.txt', 'before/backup', 'before/old/stray.txt', 'agent/other.json'])
})
