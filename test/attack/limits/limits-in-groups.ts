import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exactly } from '../../support/lists.js'
import { framesOf } from '../../support/turns.js'
import { attackOneByOne, limited } from './limits-attack.js'
import { runs } from '../support.js'

/** The control group that was delegated to the daemon. */
const folder = process.argv[2] ?? ''

const turns = () =>
  readdirSync(folder)
    .filter(name => name.startsWith('sandbox-turn-'))
    .map(name => ({
      memory: readFileSync(join(folder, name, 'memory.max'), 'utf8').trim(),
      processes: readFileSync(join(folder, name, 'pids.max'), 'utf8').trim(),
      programs: readFileSync(join(folder, name, 'cgroup.procs'), 'utf8').split('\n').length - 1,
    }))

t.test('control groups enforce the limits of a turn', async t => {
  const running = await limited(t)
  const { client } = running
  await client.call('POST /agent', { conversationId: 'seen', prompt: `${runs('sleep 100')}\nsay no`, isolated: true })
  const frames = framesOf(client, 'seen')
  await frames.until(({ kind }) => kind === 'tool_call')
  let seen = turns()
  for (; !seen.some(({ programs }) => programs > 0); seen = turns()) await new Promise(again => setTimeout(again, 50))
  t.match(seen, exactly({ memory: String(200 << 20), processes: '200' }), 'the control group has the limits')
  await client.call('POST /agent/stop', { conversationId: 'seen' })
  await frames.all()

  await attackOneByOne(t, running, ['a fork bomb', 'a memory hog'], /found more: /)
})
