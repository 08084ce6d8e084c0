import { readFileSync, readdirSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { AttachData } from '../../../plugins/agent/contract.js'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import { folderOf, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { seedConversations, type Ran } from '../../support/repositories/seeded-conversations.js'
import { exactly } from '../../support/lists.js'

t.jobs = 1

/** What a process has read so far: bytes, and calls of the system. */
const readBy = ({ pid }: RunningDaemon): { bytes: number; calls: number } => {
  const io = readFileSync(`/proc/${pid}/io`, 'utf8')
  const of = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(io)?.[1])
  return { bytes: of('rchar'), calls: of('syscr') }
}

/** The same once a start has also ended what it does behind the calls. */
const readByStart = async (daemon: RunningDaemon): Promise<{ bytes: number; calls: number }> => {
  for (let last = readBy(daemon); ;) {
    await setTimeout(300)
    const now = readBy(daemon)
    // A daemon without work still looks at its timers.
    if (now.calls - last.calls < 10) return now
    last = now
  }
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))

/** A system that notes reads does so for a file that was not read since it was written. */
const UNREAD = new Date(1_000)

/** The journals that are read while some work runs, without their run or conversation. */
const journalsReadIn = async (data: string, work: () => Promise<void>): Promise<string[]> => {
  const journals = join(data, 'journals')
  for (const file of filesBelow(journals)) utimesSync(file, UNREAD, statSync(file).mtime)
  await work()
  const read = filesBelow(journals).filter(file => statSync(file).atimeMs !== UNREAD.getTime())
  return [...new Set(read.map(file => file.slice(journals.length + 1).replace(/[cr]-\d+\./, '*.')))].sort()
}

const SIZES = [50, 1_050] as const
const MORE = SIZES[1] - SIZES[0]

for (const end of ['a clean stop', 'a kill'] as const)
  t.test(`after ${end}, a start opens no log of an ended run, and reads little for each conversation`, async t => {
    const found: { bytes: number; calls: number; journals: string[] }[] = []
    for (const size of SIZES) {
      const ran = await seedConversations(folderOf(t), size)
      const before = await spawnDaemon(t, ran)
      await readByStart(before)
      await (end === 'a kill' ? before.kill9() : before.terminate())
      let read = { bytes: 0, calls: 0 }
      const journals = await journalsReadIn(ran.data, async () => {
        const daemon = await spawnDaemon(t, ran)
        read = await readByStart(daemon)
        await daemon.terminate()
      })
      found.push({ ...read, journals })
    }
    const [few, many] = found as [(typeof found)[number], (typeof found)[number]]
    t.same(many.journals, few.journals, 'the same files are read, however many conversations there are')
    t.notMatch(many.journals.join(' '), /frames|transcripts|anchors/)
    t.ok(many.journals.includes('agent/queue.jsonl'), 'the system notes reads')
    t.ok((many.bytes - few.bytes) / MORE < 2_000, `${(many.bytes - few.bytes) / MORE} bytes for each`)
    t.ok((many.calls - few.calls) / MORE < 0.6, `${(many.calls - few.calls) / MORE} reads for each`)
  })

const attached = async (t: Test, { workspace, data }: Ran, conversationId: string): Promise<string[]> => {
  const daemon = await spawnDaemon(t, { workspace, data })
  const kinds: string[] = []
  const frames = (await daemon.client.call('POST /agent/attach', { conversationId })) as AsyncIterable<AttachData>
  for await (const { kind } of frames) kinds.push(kind)
  await daemon.terminate()
  return kinds
}

t.test('a stream that a kill left open ends when it is read', async t => {
  const ran = await seedConversations(folderOf(t), 3, [1])
  t.same(await attached(t, ran, ran.ids[1]!), ['attached', 'frame', 'frame', 'frame', 'frame', 'end'])
  const journals = new JournalStore(join(ran.data, 'journals'))
  t.teardown(() => journals.shutdown())
  const runs = await journals.list('agent/frames/')
  t.match(
    await Promise.all(runs.map(run => journals.stat(run))),
    exactly({ entries: 4, closed: true }, { entries: 4, closed: true }, { entries: 4, closed: true }),
  )
})

t.test('the line that says ready is printed when every call is answered', async t => {
  const ran = await seedConversations(folderOf(t), 1_000)
  const daemon = await spawnDaemon(t, ran)
  const { boot } = await daemon.client.call('GET /info')
  t.match(boot, { ready: true })
  t.notOk(boot.steps.some(({ state }) => state !== 'done'))
})
