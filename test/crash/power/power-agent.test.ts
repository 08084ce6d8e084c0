import '../../support/power.js'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { CardDraft, TurnRequest } from '../../../plugins/agent/providers/adapter.js'
import { Anchors } from '../../../plugins/agent/conversations/anchors.js'
import type { CardReply, Conversation, TurnInput } from '../../../plugins/agent/contract.js'
import { FrameLog } from '../../../plugins/agent/turn/frames/frame-log.js'
import type { Frame } from '../../../plugins/agent/turn/frames/frames.js'
import { restart } from '../../../plugins/agent/turn/recovery/recovery.js'
import type { Acceptance } from '../../../plugins/agent/queue/lines.js'
import { Queue } from '../../../plugins/agent/queue/queue.js'
import type { RunMessage } from '../../../plugins/agent/turn/run-entry.js'
import type { Row } from '../../../plugins/agent/turn/run-record.js'
import { Transcripts } from '../../../plugins/agent/conversations/transcripts.js'
import { pack } from '../../../plugins/system/bundles/packing.js'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import type { Journals } from '../../../sdk/index.js'
import { engineOn } from '../../plugins/agent/turn/engine-support.js'
import { cutEverywhere, type Promised } from '../../support/cuts.js'
import { daemonWith, folderOf, makeWorkspace } from '../../support/daemon.js'
import { canCut, Disk } from '../../support/power.js'
import { runTurn } from '../../support/turns.js'

const options = { skip: canCut ? false : 'this system shows no descriptors as paths' }

/** Runs `work` with the journals below a folder, then closes them. */
const withJournals = async <T>(folder: string, work: (journals: Journals) => Promise<T>): Promise<T> => {
  const store = new JournalStore(join(folder, 'journals'))
  const named = (name: string) => `agent/${name}`
  try {
    return await work({
      append: (name, entries, how) => store.append(named(name), entries, how),
      close: (name, tail) => store.close(named(name), tail),
      interrupt: (name, tail) => store.interrupt(named(name), tail),
      read: (name, after) => store.read(named(name), after),
      stat: name => store.stat(named(name)),
      rewrite: (name, entries) => store.rewrite(named(name), entries),
      rename: (name, to) => store.rename(named(name), named(to)),
      remove: name => store.remove(named(name)),
      list: async prefix => (await store.list(named(prefix))).map(name => name.slice('agent/'.length)),
      follow: (name, after) => ({ journal: named(name), after }),
    })
  } finally {
    await store.shutdown()
  }
}

const IDS = [1, 2, 3, 4]
const message = (n: number): RunMessage => ({
  run: `r-${n}`,
  conversationId: 'c',
  messageId: `m-${n}`,
  input: { prompt: `say ${n}` } as TurnInput,
  by: 'ada@example.org',
  attended: true,
  at: n,
})
const accepted = (n: number, more: Omit<Acceptance, 'row'>): Acceptance => ({
  row: { run: `r-${n}`, messageId: `m-${n}`, conversationId: 'c', delivery: more.said ? 'said' : 'started', at: n },
  ...more,
})

/** Calls of a queue, each acknowledged only when a power cut cannot undo it. */
const ORDERS: readonly ((queue: Queue) => Promise<void>)[] = [
  queue => queue.accept(accepted(1, { message: message(1), opened: { id: 'c', title: 'opened' } as Conversation })),
  ...[2, 3].map(n => (queue: Queue) => queue.accept(accepted(n, { message: { ...message(n), why: 'parked' } }))),
  queue =>
    queue.accept(
      accepted(4, {
        said: { run: 'r-1', messageId: 'm-4', text: 'words', attachments: [], by: 'ada@example.org', at: 4 },
      }),
    ),
  queue => queue.order('c', ['m-3', 'm-2'], false),
  queue => queue.pause('c'),
  queue => queue.withdraw('c', 'm-3'),
  queue => queue.ended('c', 'r-1', { paused: true, resumable: { run: 'r-1' } as never }),
  queue => queue.resume('c'),
  queue => queue.drop('c'),
]

const loaded = async (journals: Journals) => {
  const queue = new Queue(journals, async () => {})
  const opened = await queue.load()
  const [waiting, current] = [queue.waiting('c').map(({ run }) => run), queue.current('c')?.run]
  return [
    opened,
    waiting,
    current,
    queue.paused('c'),
    queue.said('c', 'r-1'),
    queue.resumable('c'),
    IDS.map(n => queue.known(`m-${n}`)),
  ]
}

t.test('a queue', options, async t => {
  const lines: unknown[] = []
  const memory = {
    append: async (_: string, entries: readonly unknown[]) => lines.push(...entries),
    read: async () => [...lines],
  } as unknown as Journals
  const reference = new Queue(memory, async () => {})
  await cutEverywhere<unknown>(t, {
    first: await loaded(memory),
    drive: (folder, promised) =>
      withJournals(folder, async journals => {
        const queue = new Queue(journals, async () => {})
        await queue.load()
        for (const order of ORDERS) {
          await order(reference)
          await promised.step(await loaded(memory), () => order(queue))
        }
      }),
    found: folder => withJournals(folder, loaded),
  })
})

t.test('a power cut during writes of a transcript', options, t =>
  cutEverywhere<string[]>(t, {
    first: [],
    drive: (folder, promised) =>
      withJournals(folder, async journals => {
        const transcripts = new Transcripts(journals)
        const row = (text: string): Row => ({ role: 'user', text })
        await promised.step(['one', 'two'], () => transcripts.add('c', 'r-1', [row('one'), row('two')]))
        await promised.step(['one', 'two', 'three'], () => transcripts.place('c', row('three')))
        await promised.step(['one', 'two', 'three', 'four'], () => transcripts.add('c', 'r-2', [row('four')]))
        await promised.step(['one', 'two'], () => transcripts.cut('c', 2))
      }),
    found: folder =>
      withJournals(folder, async journals =>
        (await new Transcripts(journals).page('c')).messages.map(({ text }) => text),
      ),
  }),
)

t.test('a power cut during writes of checkpoints', options, t =>
  cutEverywhere<string[]>(t, {
    first: [],
    drive: (folder, promised) =>
      withJournals(folder, async journals => {
        const anchors = new Anchors(journals)
        const keep = (index: number) =>
          anchors.keep('c', { id: `branch:${index}`, run: `r-${index}`, index, repos: [] })
        await promised.step(['branch:0'], () => keep(0))
        await promised.step(['branch:0', 'branch:2'], () => keep(2))
        await promised.step(['branch:0'], () => anchors.cut('c', 1))
        await promised.step([], () => anchors.forget('c'))
      }),
    found: folder =>
      withJournals(folder, async journals =>
        [...(await new Anchors(journals).byRun('c')).values()].map(({ id }) => id),
      ),
  }),
)

t.test('a power cut during durable frames', options, t =>
  cutEverywhere<string[]>(t, {
    first: [],
    drive: (folder, promised: Promised<string[]>) =>
      withJournals(folder, async journals => {
        const log = new FrameLog(journals, 'r-1', { onFrame: () => {}, onBroken: error => t.error(error) })
        const write = (flushed: boolean, kind: string) =>
          promised[flushed ? 'step' : 'loose']([...promised.last, kind], () =>
            log.write({ kind, text: kind, requestId: 'r-1.1' } as unknown as Frame),
          )
        await write(false, 'notice')
        for (const kind of ['question', 'permission', 'plan', 'resolved']) await write(true, kind)
        await write(false, 'notice')
        await write(true, 'error')
        await write(true, 'done')
      }),
    found: folder =>
      withJournals(folder, async journals =>
        (await journals.read<{ event: Frame }>('frames/r-1')).map(({ event }) => event.kind),
      ),
  }),
)

/** An engine whose turns ask once, and the state of the turn in the journals. */
const askingOn = (t: Test, journal: Journals) => {
  const handed = Promise.withResolvers<TurnRequest>()
  const begun = Promise.withResolvers<void>()
  const asks = Promise.withResolvers<void>()
  const made = engineOn(
    t,
    async function* (request, io) {
      handed.resolve(request)
      begun.resolve()
      await asks.promise
      await io.raise({ kind: 'question', questions: [{ question: 'Go on?', options: [] }] } as unknown as CardDraft)
      await new Promise(() => {})
    },
    { journal },
  )
  const found = async (): Promise<string> => {
    const { engine, queue, conversations, cards } = made
    for (const conversation of await queue.load()) conversations.open(conversation)
    await restart({
      engine,
      conversations,
      queue,
      cards,
      journal,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      resumes: async () => true,
      sweep: async () => {},
      spent: async () => {},
      lands: () => false,
      endTerminal: () => {},
    })
    const turn = engine.live('c')
    if (!turn) return 'nothing'
    if (turn.state === 'parked') return 'asked'
    const { resume } = await handed.promise
    return resume?.replies ? `answered ${JSON.stringify(resume.replies.map(({ reply }) => reply))}` : 'begun'
  }
  return { ...made, asks, begun, found }
}

t.test('a power cut during the answer to a card', options, t =>
  cutEverywhere<string>(t, {
    first: 'nothing',
    drive: (folder, promised) =>
      withJournals(folder, async journals => {
        const { engine, cards, send, asks, begun } = askingOn(t, journals)
        await promised.step('begun', () => send({}))
        await begun.promise
        const turn = engine.live('c')!
        const requestId = `${turn.run}.1`
        await promised.step('asked', async () => {
          asks.resolve()
          while (!cards.isOpen(requestId)) await new Promise(setImmediate)
          await turn.log.settled()
        })
        const reply: CardReply = { kind: 'question', requestId, answers: { 'Go on?': 'yes' } }
        await promised.step(`answered ${JSON.stringify([reply])}`, () => cards.reply(reply, { by: 'a', lands: true }))
        await engine.close()
      }),
    found: folder =>
      withJournals(folder, async journals => {
        const { engine, found } = askingOn(t, journals)
        const state = await found()
        await engine.close()
        return state
      }),
  }),
)

t.test('a bundle', options, async t => {
  let whole = ''
  const to = (folder: string) => join(folder, 'bundles', 'b.tar.gz')
  const read = (folder: string) => {
    try {
      return readFileSync(to(folder), 'base64')
    } catch {
      return 'none'
    }
  }
  await cutEverywhere<string>(t, {
    first: 'none',
    before: folder => {
      for (const name of ['bundles', 'workspace', 'data']) mkdirSync(join(folder, name))
      writeFileSync(join(folder, 'workspace', 'a.txt'), 'of the person\n')
    },
    drive: async (folder, promised) => {
      const contents = {
        workspace: join(folder, 'workspace'),
        data: join(folder, 'data'),
        files: [{ path: 'a.txt', size: 14, mode: 0o644 }] as never,
        repositories: [],
        whole: false,
        secrets: false,
        from: { sandboxId: 's', version: '1', createdAt: 1 },
      }
      await promised.step('whole', () =>
        pack(contents, {
          folder: join(folder, 'half'),
          to: to(folder),
          parts: async () => [],
          progress: () => {},
          signal: new AbortController().signal,
        }),
      )
      whole = read(folder)
    },
    found: async folder => (read(folder) === whole ? 'whole' : read(folder)),
  })
})

t.test('a rewind records that it began before it changes anything', options, async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const { client, stop } = await daemonWith(t, [], { workspace, data })
  await runTurn(client, 'r', 'say first\nwrite a.txt\n| one', { isolated: true })
  await runTurn(client, 'r', 'say second\nappend a.txt\n| two')
  const disk = new Disk(join(data, 'journals'))
  const file = join(data, 'agent/checkouts/r/a.txt')
  const lost: string[] = []
  let back = 0
  disk.around = () => {
    if (readFileSync(file, 'utf8') !== 'one\n') return
    back += 1
    const image = disk.moment().image('gone', () => 0)
    const lines = (name: string) => (image.get(name) as Buffer | undefined)?.toString().split('\n').length ?? 0
    if (lines('agent/rewinds/r.jsonl') < 2 && lines('agent/transcripts/r.jsonl') !== 2)
      lost.push([...image.keys()].join(' '))
  }
  await client.call('POST /agent/rewind', { conversationId: 'r', index: 2 })
  disk.end()
  t.ok(back > 0, `${back} flushes after the files were restored`)
  t.same(lost, [])
  await stop()
})
