import { spawnSync } from 'node:child_process'
import t from 'tap'
import { EVERY_CASE } from '../../support/lists.js'
import { tookLess } from '../../support/in-time.js'
import { runTurn } from '../../support/turns.js'
import { peakMiB, watched } from '../attempts/daemon-watch.js'
import { daemonOf } from '../network/user-daemon.js'
import { runs, walled } from '../support.js'
import { USERS } from '../users.js'

t.setTimeout(300_000)

/** How many folders a turn makes: fifty thousand, as long as there is time for it. */
const MANY = EVERY_CASE ? 20_000 : 10_000
/** Makes folders, in each of two hundred. */
const makes = (count: number) => `
const { mkdirSync } = require('node:fs')
for (let i = 0; i < ${count}; i++) mkdirSync('many/' + (i % 200) + '/' + i, { recursive: true })
`
/** A chain of folders, as deep as a path may be long. */
const DEEP = `
const { mkdirSync } = require('node:fs')
mkdirSync('deep/' + 'd/'.repeat(1800), { recursive: true })
`

for (const [user, uid] of USERS.slice(0, 1))
  t.test(`${user}: a turn that makes, moves and removes many folders delays nobody`, walled(), async t => {
    const daemon = await daemonOf(t, uid, {
      'README.md': '# work\n',
      'makes.cjs': makes(MANY),
      'deep.cjs': DEEP,
    })
    const { client, url, pid } = daemon
    const { generation } = await client.call('GET /workspace/tree', {})
    const health = watched(t, url)
    const node = `"${process.execPath}"`
    const steps: readonly (readonly [what: string, command: string])[] = [
      ['makes', `${node} makes.cjs`],
      ['makes a deep chain of', `${node} deep.cjs`],
      ['moves', 'mv many moved && mv deep sunk'],
      ['ignores', "printf 'moved\\n' > .gitignore && sleep 0.5 && : > .gitignore"],
      ['removes', 'rm -rf moved sunk'],
    ]
    for (const [at, [what, command]] of steps.entries()) {
      await runTurn(client, `c-${at}`, runs(command))
      // What was noticed is taken in meanwhile.
      await client.call('GET /workspace/changed', { since: generation })
      const longest = health.longest()
      t.ok(tookLess(longest, 3_000), `a turn that ${what} folders: others wait ${Math.round(longest)} ms`)
    }
    t.ok(peakMiB(pid) < 1_500, `${Math.round(peakMiB(pid))} MiB`)
    await client.call('PUT /workspace/file', { path: 'after.txt', content: 'x' })
    const { paths, reset } = await client.call('GET /workspace/changed', { since: generation })
    t.ok(reset || paths.includes('after.txt'), 'what changes later is noticed')
  })

t.test('where the system has no more watches the daemon says that it looks now and then', walled(), async t => {
  const few = ['unshare', '--user', '--map-root-user', 'sh', '-c']
  const limited = [...few, 'echo 500 > /proc/sys/user/max_inotify_watches; exec "$@"', 'sh']
  // An ordinary user's walls do not start in a user namespace that maps one user alone.
  const isPossible = process.getuid?.() === 0 && spawnSync(limited[0]!, [...limited.slice(1), 'true']).status === 0
  if (!isPossible) return t.pass('a limit of watches cannot be set here')
  const { makeWorkspace, folderOf, spawnDaemon } = await import('../../support/daemon.js')
  const folder = folderOf(t)
  makeWorkspace(`${folder}/w`, { 'makes.cjs': makes(1_000) })
  const { client, url } = await spawnDaemon(t, { workspace: `${folder}/w`, data: `${folder}/d`, starter: limited })
  t.match(await client.call('GET /workspace/tree', {}), { watch: 'live' })
  const health = watched(t, url)
  await runTurn(client, 'c', runs(`"${process.execPath}" makes.cjs`))
  for (let left = 100; left > 0; left--) {
    if ((await client.call('GET /workspace/tree', {})).watch === 'polling') break
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  t.match(await client.call('GET /workspace/tree', {}), { watch: 'polling' })
  t.ok(tookLess(health.longest(), 3_000))
})
