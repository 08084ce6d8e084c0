import t from 'tap'
import { walled } from '../../attack/support.js'
import { inner } from '../agent/support.js'
import { approvePending, daemonWithBackends, isRunning, listedUntil, writeExtension } from './support.js'

const SERVER = `export const activate = host => {
  const ends = []
  const listening = host.processes.onExit(exit => ends.push(exit))
  host.routes.handle('POST /{verb}/{name}', {}, async ({ params: { verb, name } }) => {
    try {
      return { body: { value: await host.processes[verb](name) ?? 'done' } }
    } catch (error) {
      return { status: error.status ?? 500, body: { message: error.message } }
    }
  })
  host.routes.handle('GET /ends', {}, () => ({ body: ends }))
  host.routes.handle('POST /deaf', {}, () => { listening(); return { body: {} } })
}
`

t.test('a backend starts, watches and ends the background programs of its own extension', walled(), async t => {
  const daemon = await daemonWithBackends(t, ['secrets', 'activity', 'logs', 'system'])
  const id = 'ada.keeper'
  writeExtension(
    daemon,
    'keeper',
    {
      ...{ publisher: 'ada', name: 'keeper', version: '1.0.0', server: 'server.mjs' },
      contributes: {
        processes: [
          { name: 'sleeper', command: 'sleep 1000' },
          { name: 'failer', command: 'sh -c "exit 7"', restart: 'never' },
          { name: 'gone', command: './gone' },
        ],
      },
    },
    { 'server.mjs': SERVER },
  )
  writeExtension(daemon, 'other', {
    ...{ publisher: 'bob', name: 'other', version: '1.0.0' },
    contributes: { processes: [{ name: 'theirs', command: 'sleep 1000' }] },
  })
  await listedUntil(daemon, ({ pending }) => pending.length === 2)
  await approvePending(daemon, id)
  await approvePending(daemon, 'bob.other')
  const ask = async (path: string, method = 'POST') => {
    const answer = await daemon.fetch(`/x/${id}${path}`, { method })
    return { status: answer.status, body: (await answer.json()) as never }
  }
  const stateOf = (name: string) => daemon.client.call('GET /extensions/{id}/processes/{name}', { id, name })

  t.match(await ask('/start/sleeper'), { status: 200 })
  const running = await stateOf('sleeper')
  t.match(running, { running: true, pid: Number })
  t.match(await ask('/status/sleeper'), { body: { value: running } }, 'as the call shows it')
  t.match(await ask('/start/theirs'), { status: 404, body: { message: /declares no process theirs/ } })
  t.match(await ask('/stop/theirs'), { status: 404 })
  t.match(await ask('/status/theirs'), { status: 404 })
  t.match(await ask('/start/gone'), { status: 409, body: { message: /gone is not there/ } })

  await ask('/start/failer')
  const ends = async (count: number) => {
    for (const until = Date.now() + 15_000; ;) {
      const { body } = await ask('/ends', 'GET')
      if ((body as unknown[]).length >= count || Date.now() > until) return body
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  t.same(await ends(1), [{ name: 'failer', code: 7 }])
  t.match(await ask('/stop/sleeper'), { status: 200 })
  t.notOk(isRunning(running.pid!))
  t.match(await ends(2), { length: 2, 1: { name: 'sleeper' } }, 'also an end that was asked for')
  t.match(await stateOf('sleeper'), { state: 'stopped' })

  await ask('/deaf')
  await daemon.client.call('POST /extensions/{id}/processes/{name}/start', { id, name: 'failer' })
  const seen = () => inner(daemon, 'GET /extensions/{id}/processes/{name}', { id, name: 'failer' })
  for (const until = Date.now() + 15_000; (await seen()).state !== 'exited' && Date.now() < until;)
    await new Promise(resolve => setTimeout(resolve, 20))
  t.match(await ask('/ends', 'GET'), { body: { length: 2 } }, 'one that no longer listens hears nothing')
})
