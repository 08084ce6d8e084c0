import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { automation } from '../support/automations.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { judgeOf, workflowOf } from '../plugins/workflows/support.js'
import { walled } from './support.js'
import { USERS } from './users.js'

const GUESSES = 25
const GATE = { step: 'j', field: 'verdict', pass: ['go'] }

for (const [who, uid] of USERS)
  t.test(
    `wrong tokens close no webhook and no gate to the right one from their address, as ${who}`,
    walled(),
    async t => {
      const folder = folderOf(t)
      const [workspace, data, home] = ['workspace', 'data', 'home'].map(name => join(folder, name))
      makeWorkspace(workspace!)
      for (const path of [data!, home!]) mkdirSync(path)
      execFileSync('chown', ['-R', `${uid}:${uid}`, folder])
      const daemon = await spawnDaemon(t, { workspace: workspace!, data: data!, user: uid, env: { HOME: home } })
      const { client } = daemon
      await client.call('POST /automations', automation('hook', { trigger: { kind: 'event' } }))
      const workflow = workflowOf('gate', [judgeOf('j', 'verdict done it is judged\n| {"data": {"verdict": "go"}}')], {
        gate: GATE,
      })
      await client.call('POST /workflows', { workflow, create: true })
      const { token: hook } = await client.call('GET /automations/{id}/token', { id: 'hook' })
      const { token: gate } = await client.call('GET /workflows/{id}/gate', { id: 'gate' })
      for (const [path, token] of [
        ['/automations/hook/fire', hook],
        ['/workflows/gate/gate', gate],
      ] as const) {
        const send = async (given: string, at: string = path) =>
          (await fetch(`${daemon.url}${at}?token=${given}&wait=60`, { method: 'POST', body: '{}' })).status
        const codes: number[] = []
        for (let at = 0; at < GUESSES; at++)
          codes.push(
            await send(
              at % 2 ? `guess-${at}` : token.slice(0, -1),
              at % 5 ? path : path.replace(/\/(hook|gate)\//, '/none/'),
            ),
          )
        t.ok(
          codes.every(code => [401, 404, 429].includes(code)),
          `${path}: ${codes.join(' ')}`,
        )
        t.ok(
          codes.slice(10).every(code => code === 429),
          'guesses are slowed down',
        )
        t.equal(await send(token), 200, `${path} takes the right token`)
        t.equal(await send(`${token}x`), 429)
      }
    },
  )
