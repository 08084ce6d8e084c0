import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { shellTurn, walled } from '../attack/support.js'
import { spawnDaemon } from '../support/daemon.js'
import { BUILDS, contained, withEngine } from '../support/servers/engine.js'
import { whereIn } from './failpoints/failpoints.js'

const until = async (holds: () => boolean): Promise<void> => {
  for (const end = Date.now() + 30_000; !holds() && Date.now() < end;) await delay(50)
}

/** The processes of the machine whose arguments hold a text. */
const processesWith = (text: string): string[] =>
  globSync('/proc/[0-9]*/cmdline').flatMap(path => {
    try {
      const words = readFileSync(path, 'latin1')
      return words.includes(text) ? [words.replaceAll('\0', ' ').slice(0, 200)] : []
    } catch {
      return []
    }
  })

void t.test(
  'a killed daemon leaves no container, and the images of its conversations stay until these are gone',
  { ...walled(), ...withEngine() },
  async t => {
    const where = whereIn(t, { 'a.txt': 'a\n' })
    const mark = `busybox sleep 86400 ${process.pid}`
    const daemon = await spawnDaemon(t, where)
    for await (const _ of await daemon.client.call('POST /capabilities', { id: 'box', kind: 'docker', config: {} }));
    const run = `podman --remote run -d --name sleeps box sh -c '${mark}'`
    await shellTurn(daemon.client, 'c', [BUILDS, run, 'podman --remote run -d box sh -c "busybox sleep 86400"'], {
      isolated: true,
    })
    const marked = mark.replaceAll(' ', '\0')
    t.ok(processesWith(marked).length > 0, 'it runs')
    await daemon.kill9()
    await until(() => processesWith(marked).length === 0 && processesWith(where.data).length === 0)
    t.same([...processesWith(marked), ...processesWith(where.data)], [])

    const { client } = await spawnDaemon(t, where)
    const [listed, ran, again] = await shellTurn(client, 'c', [
      'podman --remote ps -a --format "{{.Names}} {{.State}}" | grep sleeps',
      contained('busybox echo kept'),
      'podman --remote start sleeps && podman --remote ps --format "{{.Names}}"',
    ])
    t.match(listed, /^sleeps (?:exited|stopped|created)/i)
    t.equal(ran, 'kept')
    t.match(again, /sleeps\nsleeps$/)
    t.ok(processesWith(marked).length > 0, 'it runs again')
    await client.call('POST /agents/{id}/discard', { id: 'c' })
    t.same(processesWith(marked), [])
    t.same(globSync(join(where.data, 'capabilities/engine-{stores,doors}/c')), [])
  },
)
