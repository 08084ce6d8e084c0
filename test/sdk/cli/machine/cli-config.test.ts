import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { sandbox } from '../cli-process.js'

const FILE = '.sandbox/config/templates.json'
const NAMED = { source: 'https://templates.example.org/index.git' }

t.test('settings that came with the code are shown, accepted as they are shown, and asked for again', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const write = (settings: object) => {
    mkdirSync(join(workspace, '.sandbox/config'), { recursive: true })
    writeFileSync(join(workspace, FILE), JSON.stringify(settings))
  }
  const { client } = await spawnDaemon(t, { workspace, data })
  const config = (...args: string[]) => sandbox(['config', ...args], { env: { SANDBOX_DATA: data } })
  const waits = async () => (await client.call('GET /system/manifest-problems')).some(({ path }) => path === FILE)

  t.match(await config('accept'), { code: 0, out: /^nothing waits to be accepted; sandbox system manifest-problems/ })
  t.match(await config(), { code: 2, err: /expected config accept/ })
  t.match(await config('refuse'), { code: 2, err: /expected config accept, found config refuse/ })

  write(NAMED)
  t.equal(await waits(), true)
  t.match(
    await config('accept'),
    {
      code: 2,
      err: /templates\.example\.org[^]*accept .*templates\.json\? expected --yes, because there is no terminal/,
    },
    'it shows what it would accept, and accepts nothing unasked',
  )
  t.equal(await waits(), true)
  t.match(await config('accept', '--yes'), { code: 0, out: `accepted ${FILE}\n` })
  t.equal(await waits(), false)
  t.match(await config('accept', '--yes', '--json'), { code: 0, out: /"accepted": ?\[\]/ })

  write({ source: 'https://evil.example.org/index.git' })
  t.equal(await waits(), true, 'another source is another yes')
  t.match(JSON.parse((await config('accept', '--yes', '--json')).out), { accepted: exactly(FILE) })
  t.equal(await waits(), false)

  writeFileSync(join(workspace, FILE), '{ "sources": [')
  t.match(await config('accept', '--yes'), { code: 1, err: /templates\.json/ })
  t.equal(readFileSync(join(workspace, FILE), 'utf8'), '{ "sources": [', 'the file is left alone')
})
