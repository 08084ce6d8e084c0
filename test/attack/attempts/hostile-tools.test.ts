import { join } from 'node:path'
import t from 'tap'
import type { ApplyFrame } from '../../../plugins/capabilities/contract.js'
import { sandbox } from '../../sdk/cli/cli-process.js'
import { tookLess } from '../../support/in-time.js'
import { spread } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'
import { daemonOf } from '../network/user-daemon.js'
import { walled } from '../support.js'
import { USERS, shareOf } from '../users.js'
import { diskMiB, forgetPeak, peakMiB, watched } from './daemon-watch.js'
import { hitting, hostileToolServer, PROGRAM, WAYS } from './hostile-tools.js'
import { UNSHOWN, withoutStyles } from './hostile-texts.js'

/** The cards that one call of a tool may make. */
const MOST_CARDS = 20

t.setTimeout(1_200_000)
t.jobs = USERS.length

/** What the answer of the tool says after some of the ways. */
const SAYS: { readonly [way: string]: RegExp } = {
  requests: /sent more than 100 requests in 10 s/,
  logs: /sent more than 5000 messages in 10 s/,
  'deep structure': /nested (deeper|too deep)/,
  'rather deep structure': /nested (deeper|too deep)/,
  'hostile texts': /52;c/,
}

for (const [user, uid] of USERS) {
  const options = { ...walled(), buffered: true }
  t.test(`${user}: a turn with a hostile tool server ends, and the daemon goes on`, options, async t => {
    const { client, url, pid, data, workspace } = await daemonOf(t, uid, { 'hostile.mjs': PROGRAM })
    const { token } = await client.call('POST /system/control/tokens', { label: 'cli', scope: 'read' })
    const { baseUrl } = (await modelServer(t, 'openai', hitting)).target()
    await client.call('POST /endpoints', { id: 'e', kind: 'server', protocol: 'openai', baseUrl })
    const program = join(workspace, 'hostile.mjs')
    const urlOf = await hostileToolServer(t)
    const health = watched(t, url)
    const env = { SANDBOX_URL: url, SANDBOX_TOKEN: token, COLUMNS: '100' }
    const attempts = (['stdio', 'http'] as const).flatMap(transport => WAYS.map(way => ({ transport, way })))
    for (const [at, { transport, way }] of shareOf(uid, spread(attempts, 22, attempts.length / 3)).entries()) {
      await t.test(`${transport}: ${way}`, async t => {
        const conversationId = `${transport}-${at}`
        forgetPeak(pid)
        const disk = diskMiB(data)
        const config =
          transport === 'http'
            ? { url: urlOf(way), timeoutMs: 10_000 }
            : { transport, command: process.execPath, args: `${program}\n${way}`, timeoutMs: 10_000 }
        const steps: ApplyFrame[] = []
        const refused = await (async () => {
          const all = await client.call('POST /capabilities', { id: 'evil', kind: 'mcp', config })
          for await (const step of all) steps.push(step)
        })().catch((error: Error) => error.message)
        await client.call('POST /agent', {
          ...{ conversationId, agent: 'endpoint/e', model: 'm', isolated: true },
          ...{ prompt: 'go', permissionMode: 'bypassPermissions' },
        })
        const watch = framesOf(client, conversationId)
        let cards = 0
        for (;;) {
          const { kind, requestId } = await watch.until(each => each.kind === 'done' || each.kind === 'question')
          if (kind === 'done') break
          if (++cards > MOST_CARDS) await client.call('POST /agent/stop', { conversationId })
          else await client.call('POST /agent/reply', { kind: 'question', requestId, answers: {} })
        }
        const frames = (await watch.all()).map(({ event }) => event)
        t.ok(cards <= MOST_CARDS, `${cards} cards`)
        t.equal(frames.at(-1)?.kind, 'done')
        t.ok(tookLess(health.longest(), 6_000), 'the daemon answers meanwhile')
        t.ok(peakMiB(pid) < 1_500, `${Math.round(peakMiB(pid))} MiB of memory`)
        t.ok(diskMiB(data) - disk < 50, `${Math.round(diskMiB(data) - disk)} MiB on disk`)
        const told = JSON.stringify([
          steps,
          refused,
          await client.call('GET /capabilities'),
          frames.filter(({ kind }) => kind === 'notice'),
        ])
        t.notMatch(told, /unexpectedly|Maximum call stack/)
        const says = frames.flatMap(frame => (frame.kind === 'tool_call_update' ? [JSON.stringify(frame.content)] : []))
        if (SAYS[way]) t.match(says.at(-1), SAYS[way])
        t.ok(told.length < 100_000, `${told.length} characters of status`)
        const shows = [
          ['transcript', conversationId],
          ['attach', conversationId],
          ['call', 'GET', '/capabilities/evil/tools'],
        ]
        const args = shows[at % shows.length]!
        const { out, err } = await sandbox(args, { env })
        t.equal(UNSHOWN.exec(withoutStyles(out + err))?.[0], undefined, args.join(' '))
        await client.call('DELETE /capabilities/{id}', { id: 'evil' }).catch(() => {})
      })
    }
  })
}
