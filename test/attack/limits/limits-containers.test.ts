import t from 'tap'
import { exactly } from '../../support/lists.js'
import { BUILDS, contained, withEngine } from '../../support/servers/engine.js'
import { runTurn } from '../../support/turns.js'
import { runs, shellTurn, walled } from '../support.js'
import { USERS } from '../users.js'
import { limited } from './limits-attack.js'

const FILLS = 'for n in 1 2 3 4 5 6 7 8 9; do busybox head -c 50000000 /dev/zero > /t/$n; done; busybox sleep 60'

/** What a container does, with its options; each ends after a while by itself. */
const ATTACKS: { readonly [name: string]: readonly [command: string, options: string, says: RegExp] } = {
  'files in memory': [FILLS, '--tmpfs /t:rw', /^expected at most 200 MiB of memory in a turn, found /],
  'files in shared memory': [
    FILLS.replaceAll('/t/', '/dev/shm/'),
    '--shm-size 1g --memory 4g',
    /^expected at most 200 MiB of memory in a turn, found /,
  ],
  'a fork bomb': [
    'b() { [ $1 = 0 ] || { b $(($1-1)) & b $(($1-1)) & }; busybox sleep 60; }; b 9',
    '--pids-limit 5000',
    /^expected at most 200 processes and threads in a turn, found /,
  ],
}

for (const [user, uid] of USERS)
  t.test(`${user}: containers count among the programs of their turn`, { ...walled(), ...withEngine() }, async t => {
    const { client } = await limited(t, uid === process.getuid?.() ? {} : { user: uid })
    for await (const _ of await client.call('POST /capabilities', { id: 'engine', kind: 'docker', config: {} }));
    t.match((await shellTurn(client, 'attacker', [BUILDS], { isolated: true }))[0], /^[0-9a-f]{64}$/)
    for (const [name, [command, options, says]] of Object.entries(ATTACKS)) {
      const frames = await runTurn(client, 'attacker', `${runs(contained(command, options))}\nsay not reached`)
      t.match(
        frames.flatMap(frame => (frame.kind === 'error' ? [frame.message] : [])),
        exactly(says),
        name,
      )
    }
    t.same(await shellTurn(client, 'attacker', [contained('echo goes on')]), ['goes on'])
  })
