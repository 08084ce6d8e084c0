import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { treeOf } from '../plugins/agents/support.js'
import { refusal } from '../plugins/agent/support.js'
import { brought, packed } from '../plugins/system/bundles/bundles-support.js'
import { inGit, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { runTurn } from '../support/turns.js'
import { after, dies, whereIn } from './failpoints/failpoints.js'

const LEFT = ['system/making', 'system/staged', 'moves.json', 'returned/agent']

/** A backup that is interrupted: afterwards it is complete, or it has failed and left no files. */
export const packing = async (t: Test, point: string): Promise<void> => {
  const where = whereIn(t)
  await dies(t, where, point, async ({ once: client }) => {
    await runTurn(client, 'one', 'write a.txt\n| a', { isolated: true })
    await client.call('POST /bundles', {})
  })
  await after(t, where, async ({ client }) => {
    const { exports } = await client.call('GET /bundles')
    const files = globSync('system/exports/*', { cwd: where.data })
    if (exports[0]?.state === 'ready') t.same(files, [`system/exports/${exports[0].name}`])
    else
      t.match(
        [exports, files],
        exactly(exactly({ state: 'failed', detail: /stopped while it was packed/ }), { length: 0 }),
      )
    t.same(
      LEFT.filter(name => existsSync(join(where.data, name))),
      [],
    )
  })
}

/** A restore into a sandbox with other work than the backup: it is done completely or not at all. */
export const restoring =
  (counts: boolean, ...next: string[]) =>
  async (t: Test, point: string): Promise<void> => {
    const where = whereIn(t, { 'kept/a.txt': 'packed\n' })
    const { workspace, data } = where
    const first = await spawnDaemon(t, where)
    await runTurn(first.client, 'one', 'write b.txt\n| b', { isolated: true })
    const { name } = await packed(t, first)
    const commits = inGit(workspace, 'rev-parse', 'HEAD', 'agent/one')
    await runTurn(first.client, 'other', 'write c.txt\n| c', { isolated: true })
    await first.terminate()
    writeFileSync(join(workspace, 'kept/a.txt'), 'changed\n')
    writeFileSync(join(workspace, 'stray.txt'), 'stray\n')
    rmSync(join(workspace, 'README.md'))
    const path = brought(first, where, name)
    const before = treeOf(workspace)
    await dies(t, where, point, ({ once: client }) => client.call('POST /bundles/restore', { path, mode: 'apply' }))
    for (const again of next) await dies(t, where, again, () => Promise.resolve())
    await after(t, where, async ({ client }) => {
      // Every call waits until the start has completed interrupted work.
      await client.call('GET /agents')
      const tree = treeOf(workspace)
      const restored = !existsSync(join(workspace, 'stray.txt'))
      t.equal(restored, counts, 'it is restored if it was committed')
      t.equal(inGit(workspace, 'rev-parse', 'HEAD', 'agent/one'), commits)
      t.ok(inGit(workspace, 'rev-list', '--objects', 'HEAD', 'agent/one'), 'every object exists')
      if (restored) {
        t.same(
          [readFileSync(join(workspace, 'kept/a.txt'), 'utf8'), readFileSync(join(workspace, 'README.md'), 'utf8')],
          ['packed\n', '# work\n'],
        )
        t.equal((await client.call('GET /agents/{id}/transcript', { id: 'one' })).messages.length, 2)
        t.match(await refusal(client.call('GET /agents/{id}', { id: 'other' })), { status: 404 })
        t.equal(
          globSync('.sandbox/restored/*/before/stray.txt', { cwd: workspace }).length,
          1,
          'the previous files are kept',
        )
        t.equal(globSync('system/restore-points/*/agent/other.json', { cwd: data }).length, 1)
      } else {
        const { '.sandbox/restored/': _folder, '.sandbox/restored/.gitignore': _ignore, ...rest } = tree
        t.same(rest, before)
        t.match(await client.call('GET /agents/{id}', { id: 'other' }), { id: 'other' })
      }
      t.same(globSync('.sandbox/restored/*/new', { cwd: workspace }), [])
      t.same(
        LEFT.filter(name => existsSync(join(data, name))),
        [],
      )
    })
  }
