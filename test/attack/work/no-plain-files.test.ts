import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runTurn } from '../../support/turns.js'
import { EVERY_CASE, exactly, spread } from '../../support/lists.js'
import { daemonOf } from '../network/user-daemon.js'
import { answersOf, runs, shellTurn, walled } from '../support.js'
import { USERS, shareOf } from '../users.js'
import { callsWith, LEFT, NAMES, READS, replacing, unanswered, WHOLE } from './no-plain-files.js'

/** The longest that an answer may take on a busy machine; git's own limit is five minutes. */
const WITHIN = 90_000

t.setTimeout(1_200_000)
t.jobs = 2

const OWN = NAMES.filter(name => !name.startsWith('.git/'))
const FILES = { ...Object.fromEntries(OWN.map(name => [name, 'plain\n'])), 'other.txt': 'plain\n' }

for (const [user, uid] of USERS) {
  const options = { ...walled(), buffered: true }
  t.test(`${user}: no call waits for what is no plain file`, options, async t => {
    for (const round of EVERY_CASE ? shareOf(uid, [0, 1]) : [0])
      await t.test(`round ${round}`, async t => {
        const daemon = await daemonOf(t, uid, FILES)
        const { client } = daemon
        const some = OWN.flatMap(callsWith).filter((_, at) => at % (EVERY_CASE ? 8 : 9) === round)
        const copy = await shellTurn(client, 'copy', ['echo changed > other.txt', replacing(OWN, round)], {
          isolated: true,
        })
        t.match(copy.at(-1), /MADE$/)
        t.match(await shellTurn(client, 'tree', [replacing(NAMES, round)]), exactly(/MADE$/))
        t.same(await unanswered(t, daemon, READS, WITHIN), [])
        t.same(await unanswered(t, daemon, some, WITHIN), [])
        t.same(await unanswered(t, daemon, WHOLE, WITHIN), [])
        t.match(await shellTurn(client, 'after', ['echo works'], { isolated: true }), exactly('works'))
        t.equal(await daemon.terminate(), 0, 'it stops in time')
      })
  })

  t.test(
    `${user}: a turn that leaves what is no plain file ends, its other work lands, and the next runs`,
    options,
    async t => {
      const { client, workspace } = await daemonOf(t, uid, FILES)
      for (const [at, { what, command, left }] of shareOf(uid, spread(LEFT, 4, 12)).entries())
        await t.test(what, async t => {
          const id = `c-${at}`
          const began = performance.now()
          const frames = await runTurn(client, id, `${runs(`echo ${at} > work-${at}.txt`)}\n${runs(command)}`, {
            isolated: true,
          })
          t.ok(answersOf(frames).every(({ ok }) => ok))
          t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
          t.ok(performance.now() - began < WITHIN, 'the turn ends')
          const notices = frames.flatMap(frame => (frame.kind === 'notice' ? [frame.text] : [])).join()
          if (left) t.match(notices, new RegExp(`cannot land.*${left}`))
          const { repos } = await client.call('GET /agents/{id}/diff', { id })
          t.ok(
            repos.some(({ changes }) => changes.some(({ path }) => path === `work-${at}.txt`)),
            'the diff shows the other work',
          )
          const expect = Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
          t.match(await client.call('POST /agents/{id}/land', { id, expect }), { landed: true })
          t.equal(readFileSync(join(workspace, `work-${at}.txt`), 'utf8'), `${at}\n`)
          t.same(await shellTurn(client, id, ['echo works']), ['works'])
          t.ok(performance.now() - began < 3 * WITHIN, 'nothing waits for the other end of a pipe')
          await client.call('POST /agents/{id}/discard', { id })
        })
    },
  )
}
