import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import { exactly, spread } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { forgetPeak, peakMiB } from '../attempts/daemon-watch.js'
import { daemonOf } from '../network/user-daemon.js'
import { runs, shellTurn, walled } from '../support.js'
import { USERS, shareOf } from '../users.js'
import { INDEXES, MENDS, planting } from './hostile-index.js'
import { READS, type Asked } from './no-plain-files.js'

/** The longest that an answer may take on a busy machine. */
const WITHIN = 45_000
const FILES = { 'README.md': 'read\n', '.gitignore': '*.log\n', 'src/a.txt': 'one\n' }
const GIT_READS: readonly Asked[] = READS.filter(({ path }) => /^\/(?:git|agents|chores|history)\b/.test(path))

t.setTimeout(600_000)
t.jobs = USERS.length

/** Makes calls one after another, and returns those that had no answer in time, or one without a reason. */
const unanswered = async (
  { url, session }: { readonly url: string; readonly session: string },
  all: readonly Pick<Asked, 'method' | 'path'>[],
): Promise<string[]> => {
  const wrong: string[] = []
  const ask = async ({ method, path }: Pick<Asked, 'method' | 'path'>) => {
    const answer = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${session}` },
      signal: AbortSignal.timeout(WITHIN),
    })
    if (answer.status >= 500 && answer.status !== 501 && answer.status !== 503)
      wrong.push(`${path}: ${answer.status} ${(await answer.text()).slice(0, 200)}`)
    await answer.body?.cancel()
  }
  for (const asked of all) await ask(asked).catch(error => wrong.push(`${asked.path}: ${String(error)}`))
  return wrong
}

/** Lands the work of a conversation: whether it did, or the sentence that says why not. */
const landed = async (client: Client, id: string): Promise<boolean | string> => {
  const { repos } = await client.call('GET /agents/{id}/diff', { id })
  const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
  return (await client.call('POST /agents/{id}/land', { id, expect })).landed
}

const isWord = (t: Test, found: boolean | string, what: string) =>
  t.ok(typeof found === 'boolean' || (found.length < 1_500 && !/unexpectedly/.test(found)), `${what}: ${found}`)

for (const [user, uid] of USERS) {
  const some = shareOf(uid, spread(Object.entries(INDEXES), 4, 8))

  t.test(`${user}: a turn with a hostile index in its copy ends, and its work is not lost`, walled(), async t => {
    const daemon = await daemonOf(t, uid, FILES)
    const { client, workspace, pid } = daemon
    for (const [at, [what, command]] of some.entries())
      await t.test(what, async t => {
        const id = `c-${at}`
        forgetPeak(pid)
        const began = performance.now()
        const said = `${runs(`echo ${at} > work-${at}.txt`)}\n${runs(planting(command))}`
        const frames = await runTurn(client, id, said, { isolated: true })
        t.match(JSON.stringify(frames), /PLANTED/)
        t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
        t.ok(performance.now() - began < WITHIN, 'the turn ends')
        const reads = [`/agents/${id}`, `/agents/${id}/diff`, '/agents', '/git/root/status']
        t.same(
          await unanswered(
            daemon,
            reads.map(path => ({ method: 'GET', path })),
          ),
          [],
        )
        isWord(t, await landed(client, id).catch((error: Error) => error.message), 'it lands, or says why not')
        t.ok(peakMiB(pid) < 1_000, `${Math.round(peakMiB(pid))} MiB of memory`)
        t.match(await shellTurn(client, id, [MENDS]), exactly(/MENDED$/))
        const work = join(workspace, `work-${at}.txt`)
        if (!existsSync(work)) t.equal(await landed(client, id), true)
        t.equal(readFileSync(work, 'utf8'), `${at}\n`)
        t.ok(performance.now() - began < 3 * WITHIN, 'nothing waits')
      })
  })

  t.test(`${user}: a hostile index of the workspace keeps nobody from work`, walled(), async t => {
    const daemon = await daemonOf(t, uid, FILES)
    const { client, pid } = daemon
    await shellTurn(client, 'copy', ['echo changed > README.md'], { isolated: true })
    for (const [at, [what, command]] of some.entries())
      await t.test(what, async t => {
        forgetPeak(pid)
        t.match(await shellTurn(client, 'tree', [planting(command)]), exactly(/PLANTED$/))
        t.same(await unanswered(daemon, GIT_READS), [])
        isWord(
          t,
          await client.call('POST /agents/{id}/land', { id: 'copy', mode: 'check' }).then(
            ({ landed: done }) => done,
            (error: Error) => error.message,
          ),
          'a landing is checked, or says why not',
        )
        t.match(await shellTurn(client, `new-${at}`, ['echo works'], { isolated: true }), exactly('works'))
        t.ok(peakMiB(pid) < 1_000, `${Math.round(peakMiB(pid))} MiB of memory`)
        t.match(await shellTurn(client, 'tree', [MENDS]), exactly(/MENDED$/))
        t.equal((await fetch(`${daemon.url}/health`)).status, 200)
      })
  })
}
