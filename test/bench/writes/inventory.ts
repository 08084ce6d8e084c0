// Changes of the inventory against `git commit` alone, in the same run: `node
// dist/test/bench/writes/inventory.js`. Only the ratio counts.
import { execFile, execFileSync, type ExecFileOptions } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { host } from '../../plugins/inventory/support.js'
import { makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { inTurns, median, ms, print, quick, ratio, timed, verdict, x } from '../measure.js'

const CHANGES = quick ? 3 : 100
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-inventory-')))
const bare = join(folder, 'bare')
const how: ExecFileOptions = { cwd: bare }
const run = promisify(execFile)
const commit = async (at: number): Promise<void> => {
  writeFileSync(join(bare, 'deploy.config.json'), `{ "inventory": [${at}] }\n`)
  await run('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', 'commit', '-q', '-a', '-m', `${at}`], how)
}
mkdirSync(bare)
execFileSync('git', ['init', '-q', '-b', 'main'], { cwd: bare })
writeFileSync(join(bare, 'deploy.config.json'), '{}\n')
execFileSync('git', ['add', '-A'], { cwd: bare })
await run('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', 'commit', '-q', '-m', 'first'], how)

const endings: (() => unknown)[] = []
const workspace = join(folder, 'workspace')
makeWorkspace(workspace)
const { client } = await spawnDaemon({ teardown: (work: () => unknown) => void endings.push(work) } as never, {
  workspace,
  data: join(folder, 'data'),
})
await client.call('POST /workspace/repos/init', { path: 'intent' })
await client.call('POST /inventory', host('cellar'))
let at = 0
const found = await inTurns(
  {
    change: () => timed(() => client.call('POST /inventory', host('cellar', `10.0.${at >> 8}.${at++ & 255}`))),
    commit: () => timed(() => commit(at++)),
  },
  CHANGES,
)
const [change, alone] = [median(found.change), median(found.commit)]
print('inventory: a change of an entry', ms(change), `git commit alone ${ms(alone)}`)
verdict('inventory: a change to git commit', ratio(found.change, found.commit), { most: 1.3, as: x })
for (const end of endings.reverse()) await end()
rmSync(folder, { recursive: true, force: true })
