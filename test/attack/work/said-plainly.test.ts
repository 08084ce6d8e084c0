import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { programFile } from '../../../sdk/node/programs/package.js'
import { runTurn } from '../../support/turns.js'
import { answersOf, walled } from '../support.js'
import { USERS } from '../users.js'
import { daemonOf } from '../network/user-daemon.js'

const MIB = 1024 * 1024
/** Schedules that are well-formed; those of days that no month has never come. */
const NEVER = ['0 0 30 2 *', '0 0 31 2,4,6,9,11 *', '*/5 * 31 11 *', '0 9 30-31 2 *', '0 0 0 31 6 *']
const RARE = ['0 0 29 2 *', '0 0 31 1 *', '0 0 30 2,3 *', '0 0 30 2 1', '59 23 31 12 *']

for (const [user, uid] of USERS)
  t.test(`${user}: what cannot be is said plainly`, walled(), async t => {
    const daemon = await daemonOf(t, uid, { 'a.txt': 'one\n' })
    const { client, url, workspace } = daemon
    const said = async (asking: Promise<unknown>) =>
      asking.then(
        () => 'ok',
        (error: unknown) => String((error as Error).message),
      )

    await t.test('a schedule that never comes is refused, and a rare one is not', async t => {
      const made = (id: string, cron: string) =>
        said(
          client.call('POST /automations', { id, prompt: 'say x', enabled: true, trigger: { kind: 'schedule', cron } }),
        )
      for (const [nth, cron] of NEVER.entries()) t.match(await made(`n${nth}`, cron), /a time that comes/, cron)
      for (const [nth, cron] of RARE.entries()) t.equal(await made(`r${nth}`, cron), 'ok', cron)
    })

    await t.test('a webhook takes a body of 1 MiB, of which its turn gets the beginning', async t => {
      const trigger = { kind: 'event' } as const
      await client.call('POST /automations', { id: 'hook', prompt: 'say done', enabled: true, trigger })
      const { token } = await client.call('GET /automations/{id}/token', { id: 'hook' })
      const fired = (bytes: number) =>
        fetch(`${url}/automations/hook/fire?token=${token}`, { method: 'POST', body: 'x'.repeat(bytes) })
      for (const bytes of [1, 64_000, 64_001, MIB]) t.equal((await fired(bytes)).status, 200, `${bytes} bytes`)
      t.equal((await fired(MIB + 1)).status, 413)
    })

    await t.test('a fork with the files of now begins with those of its source', async t => {
      await runTurn(client, 'source', 'write a.txt\n| two\nwrite b.txt\n| new', { isolated: true })
      const forkOf = { conversationId: 'source', keep: 1, files: 'now' } as const
      const frames = await runTurn(client, 'fork', 'read a.txt\nread b.txt', { forkOf })
      t.strictSame(
        answersOf(frames).map(({ ok, text: shown }) => [ok, /two|new/.test(shown)]),
        [
          [true, true],
          [true, true],
        ],
      )
      t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'one\n', 'the shared tree stays as it was')
      await runTurn(client, 'shared', 'say nothing')
      const again = { conversationId: 'shared', keep: 1, files: 'now' } as const
      const [read] = answersOf(await runTurn(client, 'of-shared', 'read a.txt', { forkOf: again }))
      t.match(read?.text, /one/)
    })

    await t.test('a daemon that is too busy to answer is slow for its client, in each way to find it', async t => {
      const ran = async (args: readonly string[], cwd: string) => {
        const child = spawn(process.execPath, [programFile('sdk/cli.js'), ...args], {
          ...{ cwd, stdio: ['ignore', 'pipe', 'pipe'] as const },
          env: { PATH: process.env.PATH, HOME: daemon.data, XDG_STATE_HOME: join(daemon.data, 'none') },
          ...(uid !== process.getuid?.() && { uid, gid: uid }),
        })
        const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
        return out + err
      }
      process.kill(daemon.pid, 'SIGSTOP')
      try {
        t.match(await ran(['agents', '--data', daemon.data], workspace), /is slow: its process \d+ runs/)
      } finally {
        process.kill(daemon.pid, 'SIGCONT')
      }
      t.notMatch(await ran(['agents', '--data', daemon.data], workspace), /is slow/)
    })
  })
