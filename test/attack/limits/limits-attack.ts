import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { answersOf, runs } from '../support.js'
import { exactly } from '../../support/lists.js'

const LIMITS = { memory: '200MiB', processes: 200, openFiles: 4096, fileSize: '64MiB', pseudoTerminals: 40 }
const MANY_MS = 60_000

const OPENS = (count: number): string =>
  `python3 -c 'import os, time; k = [os.openpty() for _ in range(${count})]; time.sleep(60)'`

/** Each attack ends after a while, so that it does not bring down the machine if the daemon fails to end it. */
export const ATTACKS: { readonly [name: string]: { readonly command: string; readonly says: RegExp } } = {
  'a fork bomb': {
    command: 'b() { [ $1 = 0 ] || { b $(($1-1)) & b $(($1-1)) & }; sleep 60; }; b 9',
    says: new RegExp(
      String.raw`^expected at most 200 processes and threads in a turn, found (?:[\d,]+|more): `
        + String.raw`the programs of the turn were ended; wall\.limits\.processes in the file of --config`,
    ),
  },
  'a fork bomb of sessions': {
    command: "perl -e 'use POSIX; for (1..9) { setsid() unless fork } sleep 60'",
    says: /^expected at most 200 processes and threads in a turn, found (?:[\d,]+|more): /,
  },
  'a memory hog': {
    command: 'perl -e \'for (1..30) { $k[$_] = "x" x (40 << 20) } sleep 60\'',
    says: /^expected at most 200 MiB of memory in a turn, found (?:[\d.]+ [MG]iB|more): .*wall\.limits\.memory/,
  },
  'many memory hogs': {
    command: 'for n in 1 2 3 4 5 6 7 8 9; do perl -e \'$k = "x" x (40 << 20); sleep 60\' & done; wait',
    says: /^expected at most 200 MiB of memory in a turn, found (?:\d+ MiB|more): /,
  },
  'files in memory': {
    command: 'for n in 1 2 3 4 5 6 7 8 9; do head -c 50000000 /dev/zero > /dev/shm/$n; done; sleep 60',
    says: /^expected at most 200 MiB of memory in a turn, found (?:\d+ MiB|more): /,
  },
  'a file of 100 GiB without content': {
    command: 'truncate -s 100G big',
    says: /^expected at most 64\.0 MiB in one file, found more: .*wall\.limits\.fileSize/,
  },
  'a file that grows': {
    command: 'dd if=/dev/zero of=big bs=1M count=200; echo went on',
    says: /^expected at most 64\.0 MiB in one file, found more: /,
  },
  'a file of a program that ignores the signal': {
    command: 'node -e \'fs.truncateSync("README.md", 1e11)\'',
    says: /^expected at most 64\.0 MiB in one file, /,
  },
  'all pseudo-terminals of the machine': {
    command: OPENS(2000),
    says: /^expected at most 40 pseudo-terminals in a turn, found [\d,]+: .*wall\.limits\.pseudoTerminals/,
  },
  'pseudo-terminals of many programs': {
    command: `for n in 1 2 3 4 5; do ${OPENS(20)} & done; wait`,
    says: /^expected at most 40 pseudo-terminals in a turn, found [\d,]+: /,
  },
  'open files': {
    command: 'perl -e \'while (open(my $f, "<", "/dev/null")) { push @k, $f } sleep 60\'',
    says: /^expected at most 4,096 open files in a turn, found [\d,]+: .*wall\.limits\.openFiles/,
  },
}

/** The real program with small limits, in folders that this user can write. */
export const limited = async (
  t: Test,
  { starter = [], user }: { starter?: readonly string[]; user?: number } = {},
): Promise<RunningDaemon> => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify({ wall: { limits: LIMITS } }))
  if (user !== undefined) {
    chmodSync(folder, 0o755)
    execFileSync('chown', ['-R', `${user}:${user}`, where.workspace])
    execFileSync('install', ['-d', '-m', '700', '-o', String(user), where.data])
    chownSync(folder, user, user)
  }
  const home = user === undefined ? {} : { HOME: folder, XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: folder }
  return spawnDaemon(t, {
    ...where,
    starter,
    env: home,
    args: ['--config', config],
    ...(user !== undefined && { user }),
  })
}

/** Runs the attacks one after another in the conversation `attacker`; checks each message of the daemon. */
export const attackOneByOne = async (
  t: Test,
  { client, url }: RunningDaemon,
  attacks: readonly string[] = Object.keys(ATTACKS),
  found = /found /,
): Promise<void> => {
  for (const name of attacks) {
    const { command, says } = ATTACKS[name]!
    await t.test(name, { timeout: MANY_MS }, async t => {
      let slowest = 0
      let over = false
      const statuses = new Set<number>()
      const asking = (async () => {
        while (!over) {
          const began = performance.now()
          statuses.add((await fetch(`${url}/health`)).status)
          slowest = Math.max(slowest, performance.now() - began)
          await new Promise(resolve => setTimeout(resolve, 20))
        }
      })()
      const began = performance.now()
      const frames = await runTurn(client, 'attacker', `${runs(command)}\nsay not reached`, { isolated: true })
      const took = performance.now() - began
      over = true
      await asking
      t.same([...statuses], [200])
      const errors = frames.flatMap(frame => (frame.kind === 'error' ? [frame.message] : []))
      t.match(errors, exactly(says))
      t.match(errors[0], found, 'the system enforced the limit')
      t.match(answersOf(frames), exactly({ ok: false, text: says }))
      t.match(frames.at(-1), { kind: 'done', reason: 'failed' })
      t.ok(took < 50_000, `ended after ${Math.round(took)} ms, before its own end`)
      t.ok(slowest < 5_000, `an answer took at most ${Math.round(slowest)} ms`)
    })
  }
}

/** All attacks, and those of an agent program, while another turn works. */
export const attack = async (t: Test, running: RunningDaemon): Promise<void> => {
  const { client, data } = running
  await client.call('POST /agent', {
    conversationId: 'other',
    prompt: `${runs('until [ -e stop ]; do sleep 0.05; done; echo worked')}\nsay done`,
    isolated: true,
  })
  const other = framesOf(client, 'other')
  await other.until(({ kind }) => kind === 'tool_call')
  await attackOneByOne(t, running)
  for (const name of ['a memory hog', 'a file of 100 GiB without content']) {
    const { command, says } = ATTACKS[name]!
    const frames = await runTurn(client, 'program', `${runs(command)}\nsay not reached`, {
      isolated: true,
      harness: 'vendor-code',
    })
    t.match(
      frames.filter(({ kind }) => kind === 'error'),
      exactly({ message: says }),
      `${name} of an agent program`,
    )
    t.match(frames.at(-1), { kind: 'done', reason: 'failed' })
  }
  const [last] = answersOf(await runTurn(client, 'program', 'run echo here again', { harness: 'vendor-code' }))
  t.match(last, { ok: true, text: /here again/ }, 'the agent program works in the next turn')
  t.match(
    answersOf(await runTurn(client, 'attacker', 'run echo here again')),
    exactly({ ok: true, text: 'here again' }),
    'the conversation continues',
  )
  await runTurn(client, 'friend', 'run echo friend', { isolated: true })
  writeFileSync(join(data, 'agent/checkouts/other/stop'), '')
  const frames = (await other.all()).map(({ event }) => event)
  t.match(answersOf(frames), exactly({ ok: true, text: 'worked' }), 'the other turn continued')
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
}
