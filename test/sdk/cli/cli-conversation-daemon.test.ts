import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace } from '../../support/daemon.js'
import { going, sandbox } from './cli-process.js'

t.test('on a real daemon a turn is steered, rewound, forked, renamed and archived', async t => {
  const state = folderOf(t)
  const workspace = join(state, 'workspace')
  makeWorkspace(workspace)
  const env = { XDG_STATE_HOME: state }
  await going(t, ['serve', '--workspace', workspace, '--port', '0'], { env }).until(/ready at/)
  const run = async (args: readonly string[], input?: string) => {
    const ran = await sandbox(args, { env, cwd: workspace, ...(input !== undefined && { input }) })
    t.equal(ran.code, 0, `${args.join(' ')}: ${ran.err}`)
    return ran.out
  }
  await run(['run', 'write one.txt\n| 1', '--conversation', 'a'])
  await run(['run', 'write two.txt\n| 2', '--conversation', 'a', '--attach', 'README.md'])
  t.match(
    await run(['transcript']),
    /^0 {2}\S+.*\n {3}write one\.txt\n.*\n1 {2}agent\n {3}✓ Write one\.txt.*attached: README\.md\n3 {2}agent\n/s,
  )
  t.match(await run(['fork', 'a', 'say forked', '--before', '2', '--as', 'b']), /forked/)
  t.match(await run(['diff', 'b', '--stat']), /^A one\.txt .*\n$/, 'with the files from before the message')
  t.match(await run(['rewind', 'a', '--yes']), /^back to before message 2: 2 messages dropped\n/)
  t.match(await run(['diff', 'a', '--stat']), /^A one\.txt .*\n$/)
  await run(['run', 'ask Go on? | yes | no', '--conversation', 'a', '--detach'])
  while (!(await run(['agents'])).includes('awaiting'));
  t.match(await run(['steer', 'a', '-'], 'say steered'), 'said to a')
  await run(['run', 'say later', '--conversation', 'a', '--detach'])
  const [, waiting = ''] =
    /\n(m-\S+) .* the turn waits for an answer {2}say later\n/.exec(await run(['queue', 'a'])) ?? []
  t.equal(await run(['queue', 'a', '--remove', waiting]), `removed ${waiting}: say later\n`)
  t.equal(await run(['queue', 'a']), 'no messages wait\n')
  await run(['stop', 'a'])
  t.equal(await run(['rename', 'a', 'Two files']), 'a is called Two files\n')
  t.match(await run(['archive', 'b']), /^archived b;/)
  t.match(await run(['archive', '--list']), /^CONVERSATION .*\nb /)
  t.equal(await run(['archive', '--restore', 'b']), 'restored b\n')
  t.match(await run(['agents']), /\na .*Two files\n/)
})
