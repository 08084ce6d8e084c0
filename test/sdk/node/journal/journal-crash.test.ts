import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { JournalStore } from '../../../../sdk/node/journal/journal-store.js'

const APPENDER = fileURLToPath(new URL('appender.js', import.meta.url))
const PIPED: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit']
const RUN = 'agent/frames/r-1'

interface Told {
  position?: number
  lane?: number
  n?: number
  error?: string
  entries?: number
  after?: boolean
}

const told = (text: string): Told[] =>
  text
    .slice(0, text.lastIndexOf('\n'))
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as Told)

t.test('nothing acknowledged is lost when the process is killed during its work', async t => {
  for (const name of [RUN, 'agent/ledger']) {
    const folder = t.testdir()
    let entries = 0
    for (let round = 0; round < 10; round++) {
      const child = spawn(process.execPath, [APPENDER, folder, name, String(round * 300)], { stdio: PIPED })
      let text = ''
      const enough = 2_000 + round * 3_333
      child.stdout.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
        if (text.length > enough) child.kill('SIGKILL')
      })
      await once(child, 'close')
      const store = new JournalStore(folder)
      const read = await store.read<{ lane: number; n: number }>(name)
      const lost = told(text).filter(({ position = 0, lane, n }) => {
        const found = read[position - 1]
        return found?.lane !== lane || found?.n !== n
      })
      t.same(lost, [], `round ${round}`)
      t.ok(read.length > entries)
      t.equal(await store.append(name, [{ lane: -1, n: round }]), read.length + 1)
      entries = read.length + 1
      await store.shutdown()
    }
    if (name === RUN) {
      const ids = readFileSync(join(folder, `${RUN}.events`), 'utf8').match(/^id: .*$/gm)
      t.same(
        ids,
        Array.from({ length: entries }, (_, n) => `id: r-1:${n + 1}`),
      )
    }
  }
})

t.test('with a file size limit, entries that do not fit are refused, and smaller ones are stored', async t => {
  const folder = t.testdir()
  const limit = 300_000
  const program = ['env', '-u', 'NODE_OPTIONS', process.execPath, APPENDER, folder, RUN, '7000', 'stop']
  const child = spawn('prlimit', [`--fsize=${limit}`, ...program], { stdio: PIPED })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  const [code] = await once(child, 'close')
  const lines = told(text)
  t.equal(code, 0)
  t.match(lines.find(({ error }) => error)?.error, /the disk is full/)
  t.match(lines.at(-1), { after: true }, 'a smaller entry still fits')
  const acknowledged = lines.flatMap(({ position }) => position ?? [])
  const store = new JournalStore(folder)
  const read = await store.read<unknown>(RUN)
  t.same(
    acknowledged.sort((a, b) => a - b),
    Array.from({ length: acknowledged.length }, (_, n) => n + 1),
  )
  t.equal(read.length, acknowledged.length + 1)
  t.equal(read.at(-1), 'after')
  t.ok(readFileSync(join(folder, `${RUN}.events`), 'utf8').endsWith('data: "after"\n\n'))
  await store.shutdown()
})

t.test('appends work again when a full disk has space again', async t => {
  const folder = join(t.testdir({ small: {} }), 'small')
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return t.pass('only the superuser can make a small disk; the limit on a file covers the rest')
  }
  const store = new JournalStore(join(folder, 'journals'))
  try {
    writeFileSync(join(folder, 'ballast'), 'x'.repeat(100_000))
    const big = { text: 'y'.repeat(20_000) }
    let written = 0
    for (let full = false; !full;) {
      await store.append(RUN, [big]).then(
        position => (written = position),
        () => (full = true),
      )
    }
    await t.rejects(store.append(RUN, [big, big, big]), /the disk is full/)
    t.same(await store.stat(RUN), { entries: written, closed: false })
    rmSync(join(folder, 'ballast'))
    t.equal(await store.append(RUN, [big]), written + 1)
    t.same(
      await store.read(RUN),
      Array.from({ length: written + 1 }, () => big),
    )
    const huge = { text: 'y'.repeat(300_000) }
    const [small, large] = await Promise.allSettled([store.append(RUN, ['small']), store.append(RUN, [huge])])
    t.match(small, { status: 'fulfilled', value: written + 2 }, 'the entry that fits is kept')
    t.match(large, { status: 'rejected' })
    await store.shutdown()
    const again = new JournalStore(join(folder, 'journals'))
    t.same(await again.stat(RUN), { entries: written + 2, closed: false })
    await again.shutdown()
  } finally {
    await store.shutdown()
    execFileSync('umount', ['--lazy', folder])
  }
})
