import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { Fleet } from '../../../plugins/agents/roster/fleet.js'
import { endLanding } from '../../../plugins/agents/landing/apply.js'
import { LandingRecords, type LandingRecord } from '../../../plugins/agents/landing/record.js'
import { Bed, memoryFiles, treeOf } from './support.js'
import type { CrashOrder } from './crash-child.js'
import { exactly } from '../../support/lists.js'

const CHILD = fileURLToPath(new URL('crash-child.js', import.meta.url))

/** A branch that changes, adds, removes and moves files, so that a landing needs many writes. */
const busyBed = (t: Test): Bed => {
  const bed = new Bed(t, main => {
    mkdirSync(join(main, 'old/deep'), { recursive: true })
    for (const name of ['a', 'b', 'old/one', 'old/deep/two', 'becomes'])
      writeFileSync(join(main, name), `${name}\n`.repeat(20))
  })
  const { copy } = bed
  writeFileSync(join(copy, 'a'), 'agent\n')
  rmSync(join(copy, 'old'), { recursive: true })
  rmSync(join(copy, 'becomes'))
  mkdirSync(join(copy, 'becomes/in'), { recursive: true })
  writeFileSync(join(copy, 'becomes/in/x'), 'x\n')
  mkdirSync(join(copy, 'new/deep'), { recursive: true })
  writeFileSync(join(copy, 'new/deep/y'), 'y\n')
  symlinkSync('a', join(copy, 'link'))
  bed.commit(copy, 'work')
  writeFileSync(join(bed.main, 'b'), 'mine\n')
  return bed
}

const landAndDie = (bed: Bed, how: CrashOrder['how'], at: number) => {
  const records = join(bed.folder, 'records')
  rmSync(records, { recursive: true, force: true })
  const order: CrashOrder = {
    workspace: bed.main,
    scratchRepos: bed.folder,
    records,
    branch: bed.branch,
    tip: bed.tip,
    checkout: bed.checkout,
    how,
    at,
  }
  const { stdout, signal, stderr } = spawnSync(process.execPath, [CHILD, JSON.stringify(order)], { encoding: 'utf8' })
  const names = existsSync(join(records, 'landings')) ? readdirSync(join(records, 'landings')) : []
  const found = names.map(name => JSON.parse(readFileSync(join(records, 'landings', name), 'utf8')) as LandingRecord)
  return {
    signal,
    found,
    answer: stdout ? (JSON.parse(stdout) as { writes: number; error?: string }) : undefined,
    stderr,
  }
}

/** Recovers like the next start; returns the remaining landings, and collects messages to conversations. */
const recover = async (bed: Bed, found: LandingRecord[], told: unknown[]): Promise<LandingRecord[]> => {
  const records = new LandingRecords(memoryFiles())
  for (const record of found) await records.write(record)
  const host = {
    call: async (call: string, input: unknown) => (told.push({ call, input }), { ok: true }),
    emit: () => {},
    log: { info: () => {}, warn: () => {}, error: (message: string) => told.push(message) },
  }
  await new Fleet({
    ...bed.deps,
    records,
    host: host as never,
    notes: {} as never,
    statuses: {} as never,
    turns: new KeyedMutex(),
  }).recover()
  return records.open()
}

const restore = (bed: Bed, saved: string): void => {
  for (const name of readdirSync(bed.main)) if (name !== '.git') rmSync(join(bed.main, name), { recursive: true })
  cpSync(saved, bed.main, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
}

t.test('killed at any of its writes, a landing is undone or completed at the next start', async t => {
  const bed = busyBed(t)
  const saved = join(bed.folder, 'saved')
  cpSync(bed.main, saved, {
    recursive: true,
    verbatimSymlinks: true,
    preserveTimestamps: true,
    filter: path => !path.endsWith('.git'),
  })
  const before = treeOf(bed.main)
  const after = { ...treeOf(bed.copy), b: 'file mine\n' }
  const index = bed.git()
  const ends = new Set<string>()
  for (let at = 0; ; at++) {
    const { signal, found, answer, stderr } = landAndDie(bed, 'kill', at)
    if (answer) {
      t.same(treeOf(bed.main), after, 'not killed: landed')
      t.ok(at > 10, `${at} writes were interrupted`)
      break
    }
    t.equal(signal, 'SIGKILL', stderr)
    const records = new LandingRecords(memoryFiles())
    for (const record of found) t.same(await endLanding(records, record, bed.wall), [])
    const now = treeOf(bed.main)
    const end = JSON.stringify(now) === JSON.stringify(before) ? 'untouched' : 'landed'
    ends.add(end)
    t.same(now, end === 'untouched' ? before : after, `write ${at}: ${end}`)
    t.equal(
      end === 'landed',
      (await records.open()).some(({ state }) => state === 'applied'),
      'the record says so',
    )
    restore(bed, saved)
  }
  t.same([...ends].sort(), ['landed', 'untouched'])
  t.equal(bed.git(), index)
})

t.test('a disk that becomes full at any write leaves nothing of a landing behind', async t => {
  const bed = busyBed(t)
  const before = treeOf(bed.main)
  for (let at = 0; ; at++) {
    const { answer, found, stderr } = landAndDie(bed, 'fail', at)
    if (answer?.error === undefined) {
      t.ok(at > 10, stderr)
      break
    }
    t.equal(answer.error, 'ENOSPC')
    t.same(found, [], 'no landing is in progress')
    t.same(treeOf(bed.main), before, `write ${at}`)
  }
})

t.test('changes that a person made while the daemon was down are kept', async t => {
  const bed = busyBed(t)
  let at = 0
  for (; ; at++) {
    const { found } = landAndDie(bed, 'kill', at)
    if (found[0]?.state === 'moving') {
      writeFileSync(join(bed.main, 'a'), 'written meanwhile\n')
      const left = await endLanding(new LandingRecords(memoryFiles()), found[0], bed.wall)
      t.same(left, ['a'])
      t.equal(readFileSync(join(bed.main, 'a'), 'utf8'), 'written meanwhile\n')
      t.notMatch(Object.keys(treeOf(bed.main)).join(' '), /sandbox-write/)
      break
    }
    for (const record of found) await endLanding(new LandingRecords(memoryFiles()), record, bed.wall)
  }
})

t.test('the next start removes staged files, also in folders that a person moved meanwhile', async t => {
  const bed = busyBed(t)
  const saved = join(bed.folder, 'saved')
  cpSync(bed.main, saved, {
    recursive: true,
    verbatimSymlinks: true,
    preserveTimestamps: true,
    filter: path => !path.endsWith('.git'),
  })
  const waiting = () => Object.keys(treeOf(bed.main)).filter(path => path.includes('.sandbox-write-'))
  const told: unknown[] = []
  let waited = 0
  for (let at = 0; ; at++) {
    const { found, answer } = landAndDie(bed, 'kill', at)
    if (answer) break
    waited += waiting().length
    const landed = existsSync(join(bed.main, 'new/deep/y'))
    for (const name of ['new', 'old'])
      if (existsSync(join(bed.main, name))) renameSync(join(bed.main, name), join(bed.main, `my-${name}`))
    told.length = 0
    await recover(bed, found, told)
    t.same(waiting(), [], `write ${at}`)
    if (found[0]?.state === 'moving' && !landed)
      t.match(JSON.stringify(told), /"new\/deep\/y"/, 'the staged files there are reported as left')
    restore(bed, saved)
  }
  t.ok(waited > 20)
})

t.test('the next start reports to the conversation what landed, and what a person changed meanwhile', async t => {
  const bed = busyBed(t)
  const told: unknown[] = []
  for (let at = 0; ; at++) {
    const { found } = landAndDie(bed, 'kill', at)
    if (found[0]?.state !== 'moving') {
      t.same(await recover(bed, found, told), [])
      t.same(told, [], 'nothing had been changed')
      continue
    }
    writeFileSync(join(bed.main, 'a'), 'written meanwhile\n')
    t.same(await recover(bed, found, told), [])
    t.match(
      told,
      exactly({
        call: 'agent.landed',
        input: {
          id: 'c-1',
          repos: { length: 0 },
          conflicts: exactly({ repo: 'root', paths: exactly({ path: 'a', reason: 'workspace' }) }),
        },
      }),
    )
    writeFileSync(join(bed.main, 'a'), 'a\n'.repeat(20))
    told.length = 0
    await recover(bed, landAndDie(bed, 'kill', 1_000_000).found, told)
    t.match(
      told,
      exactly({ call: 'agent.landed', input: { id: 'c-1', repos: exactly({ repo: 'root', landedTip: bed.tip }) } }),
    )
    t.same(treeOf(bed.main), { ...treeOf(bed.copy), b: 'file mine\n' })
    break
  }
})
