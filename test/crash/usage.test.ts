import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { LedgerLine } from '../../plugins/usage/line.js'
import { daemonWith, folderOf, makeWorkspace } from '../support/daemon.js'
import { ledgerLines, recordTurn } from '../plugins/usage/support.js'

const CHILD = fileURLToPath(new URL('usage-child.js', import.meta.url))
const KILLS = [1, 2, 5, 30, 31, 77, 120]

/** Has a process record turns until `count` are acknowledged, kills it, and returns the acknowledged ones. */
const recordUntil = async (data: string, from: number, count: number): Promise<number[]> => {
  const child = spawn(process.execPath, [CHILD, data, String(from)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const acknowledged: number[] = []
  for await (const line of createInterface(child.stdout)) {
    acknowledged.push(Number(line))
    if (acknowledged.length === count) child.kill('SIGKILL')
  }
  await exited
  return acknowledged
}

t.test('after a kill during recording, every acknowledged turn counts once, and recording continues', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const acknowledged = new Set<number>()
  let from = 0
  for (const [at, count] of KILLS.entries()) {
    for (const n of await recordUntil(data, from, count)) acknowledged.add(n)
    // The last turns may or may not be recorded: they are recorded again, as a restarted daemon does.
    from = Math.max(...acknowledged) - 2
    if (at % 3 === 2)
      for (const end of ['', '-wal', '-shm']) rmSync(join(data, 'usage', `usage.sqlite${end}`), { force: true })
    const daemon = await daemonWith(t, ['usage'], { workspace, data })
    await recordTurn(daemon, { run: `after-${at}`, costUsd: 0.01 })
    const lines: LedgerLine[] = ledgerLines(daemon)
    const { total } = await daemon.client.call('GET /usage/rollup')
    const runs = lines.map(({ run }) => run)
    t.equal(new Set(runs).size, runs.length, `${count}: none is duplicated`)
    t.same(
      [...acknowledged].filter(n => !runs.includes(`r-${n}`)),
      [],
      `${count}: none is missing`,
    )
    t.match(total, { turns: lines.length, costUsd: Number((lines.length * 0.01).toFixed(9)) }, `${count}: sums match`)
    await daemon.stop()
  }
})
