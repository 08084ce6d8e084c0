import { join } from 'node:path'
import t from 'tap'
import { EXIT_CODES } from '../../../sdk/cli/exit-codes.js'
import { EXIT } from '../../../sdk/cli/verb.js'
import { folderOf, makeWorkspace } from '../../support/daemon.js'
import { going, sandbox } from './cli-process.js'

t.test('each exit code means one thing, for written verbs and for those of groups', async t => {
  const state = folderOf(t)
  const workspace = join(state, 'workspace')
  makeWorkspace(workspace)
  const env = { XDG_STATE_HOME: state }
  const cases: readonly (readonly [code: number, ...args: string[]])[] = [
    [EXIT.ok, 'run', 'say hi', '--shared', '--conversation', 'c-1'],
    [EXIT.ok, 'loops'],
    [EXIT.failed, 'run', 'fail it broke', '--shared', '--conversation', 'c-2'],
    [EXIT.failed, 'activity', 'verify', join(state, 'none')],
    [EXIT.usage, 'run'],
    [EXIT.usage, 'loops', 'start'],
    [EXIT.usage, 'settings', 'set', '--agent-retention-days', 'many'],
    [EXIT.usage, 'agents', 'list', '--nothing'],
    [EXIT.waits, 'run', 'ask Which one?\n| a\n| b', '--shared', '--conversation', 'c-3'],
    [EXIT.refused, 'diff', 'nothing'],
    [EXIT.refused, 'agents', 'get', 'nothing'],
    [EXIT.refused, 'loops', 'stop', 'c-1'],
    [EXIT.refused, 'answer', 'nothing', 'yes'],
  ]
  const daemon = going(t, ['serve', '--workspace', workspace, '--port', '0'], { env })
  await daemon.until(/ready at/)
  for (const [code, ...args] of cases) {
    const ran = await sandbox(args, { env })
    t.equal(ran.code, code, `${args.join(' ')}: ${ran.err}`)
  }
  await daemon.end()
  for (const args of [['agents'], ['loops'], ['loops', 'stop', 'c-1'], ['run', 'say hi']])
    t.equal((await sandbox(args, { env })).code, EXIT.noDaemon, args.join(' '))
})

t.test('every exit code is on the page, once', t => {
  t.same(
    EXIT_CODES.map(([code]) => Number(code)),
    Object.values(EXIT),
  )
  t.end()
})
