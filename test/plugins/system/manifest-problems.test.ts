import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { refusal } from '../agent/support.js'

const FILE = '.sandbox/config/settings.json'

t.test('a file with unsupported entries is listed with each problem, and read again every time', async t => {
  const daemon = await daemonWith(t, ['system', 'settings'], {
    files: { [FILE]: '{"agentRetentionDay": 5, "colour": "red", "subagentDepth": 99}' },
  })
  const { client, workspace } = daemon
  t.equal((await fetch(`${daemon.url}/system/manifest-problems`)).status, 401)
  t.match(await refusal((await daemon.token('editor')).client.call('GET /system/manifest-problems')), { status: 403 })
  t.same(await (await daemon.token('read')).client.call('GET /system/manifest-problems'), [
    {
      path: FILE,
      problems: [
        {
          kind: 'unknownKey',
          detail: 'agentRetentionDay: no setting of this sandbox',
          suggestion: 'agentRetentionDays',
        },
        { kind: 'unknownKey', detail: 'colour: no setting of this sandbox' },
        { kind: 'invalidEntry', detail: 'subagentDepth: its value does not fit, so the default 3 holds' },
      ],
    },
  ])
  writeFileSync(join(workspace, FILE), '{ not json')
  t.match(
    await client.call('GET /system/manifest-problems'),
    exactly({ problems: exactly({ kind: 'unreadable', detail: /does not hold a JSON object/ }) }),
  )
  writeFileSync(join(workspace, FILE), '{"subagentDepth": 2}')
  t.same(await client.call('GET /system/manifest-problems'), [])
  rmSync(join(workspace, FILE))
  t.same(await client.call('GET /system/manifest-problems'), [])
})
