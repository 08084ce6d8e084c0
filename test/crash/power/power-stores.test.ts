import '../../support/power.js'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { FileStore } from '../../../kernel/storage/files.js'
import { Segments } from '../../../plugins/activity/segments.js'
import { SettingsFile } from '../../../plugins/settings/settings-file.js'
import { writeAtomic } from '../../../sdk/node/files/files.js'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import { carryOut, planMoves, takeReturned } from '../../../sdk/node/files/moves.js'
import { openSeal } from '../../../kernel/storage/seal.js'
import { cutEverywhere, type Promised } from '../../support/cuts.js'
import { canCut } from '../../support/power.js'

const options = { skip: canCut ? false : 'this system shows no descriptors as paths' }
const COUNT = 12

const entriesIn = async (folder: string, ...names: string[]): Promise<unknown[]> => {
  const store = new JournalStore(join(folder, 'journals'))
  try {
    // An empty journal counts as none.
    return await Promise.all(names.map(async name => ((await store.stat(name))?.entries ? store.read(name) : 'none')))
  } finally {
    await store.shutdown()
  }
}

t.test('appended entries', options, t =>
  cutEverywhere<unknown[]>(t, {
    first: ['none'],
    drive: async (folder, promised) => {
      const store = new JournalStore(join(folder, 'journals'))
      const states = Array.from({ length: COUNT }, (_, last) =>
        Array.from({ length: last + 1 }, (_, n) => ({ n, text: 'x'.repeat(n * 40) })),
      )
      const add = (at: number, flush: boolean) =>
        promised[flush ? 'step' : 'loose']([states[at]!], () =>
          store.append('a/deep/log', [states[at]!.at(-1)], { flush }),
        )
      for (const at of [0, 1]) await add(at, true)
      await add(2, false)
      // Appends during a flush wait for the next one.
      const first = add(3, true)
      await new Promise(resolve => setImmediate(resolve))
      await Promise.all([first, ...[4, 5, 6, 7].map(at => add(at, true))])
      await Promise.all([8, 9, 10, 11].map(at => add(at, at % 2 === 1)))
      await store.shutdown()
    },
    found: folder => entriesIn(folder, 'a/deep/log'),
  }),
)

t.test('a power cut during appends to a journal and its close', options, t =>
  cutEverywhere<unknown[]>(t, {
    first: ['none'],
    drive: async (folder, promised) => {
      const store = new JournalStore(join(folder, 'journals'))
      await promised.loose([[1]], () => store.append('a/log', [1]))
      await promised.step([[1]], () => store.shutdown())
    },
    found: folder => entriesIn(folder, 'a/log'),
  }),
)

t.test('a power cut during an append to a journal that was closed before its name was flushed', options, t =>
  cutEverywhere<unknown[]>(t, {
    first: ['none'],
    drive: async (folder, promised) => {
      const store = new JournalStore(join(folder, 'journals'), { open: 1 })
      await promised.loose([[1]], () => store.append('a/log', [1]))
      await store.stat('a/other')
      await promised.step([[1, 2]], () => store.append('a/log', [2], { flush: true }))
      await store.shutdown()
    },
    found: folder => entriesIn(folder, 'a/log'),
  }),
)

t.test('a power cut while journals are rewritten, renamed and removed', options, t =>
  cutEverywhere<unknown[]>(t, {
    first: ['none', 'none'],
    drive: async (folder, promised) => {
      const store = new JournalStore(join(folder, 'journals'))
      await promised.step([[1], 'none'], () => store.append('a/one', [1], { flush: true }))
      await promised.step([[1, 2], 'none'], () => store.append('a/one', [2], { flush: true }))
      await promised.step([[3], 'none'], () => store.rewrite('a/one', [3]))
      await promised.step([[3, 4], 'none'], () => store.append('a/one', [4], { flush: true }))
      await promised.step(['none', [3, 4]], () => store.rename('a/one', 'b/deep/two'))
      await promised.step([[5], [3, 4]], () => store.rewrite('a/one', [5]))
      await promised.step([[5], 'none'], () => store.remove('b/deep/two'))
      await promised.step(['none', [5]], () => store.rename('a/one', 'b/deep/two'))
      await store.shutdown()
    },
    found: folder => entriesIn(folder, 'a/one', 'b/deep/two'),
  }),
)

t.test('a power cut during writes of sealed documents and of their key', options, t =>
  cutEverywhere<unknown[]>(t, {
    first: ['none', 'none'],
    drive: async (folder, promised) => {
      const files = new FileStore(join(folder, 'files'), await openSeal(join(folder, 'keys', 'machine.key')))
      const step = (state: unknown[], work: () => Promise<unknown>) => promised.step(state, work)
      await step([{ n: 1 }, 'none'], () => files.write('a/one', { n: 1 }))
      await step([{ n: 2 }, 'none'], () => files.write('a/one', { n: 2 }))
      await step([{ n: 2 }, { n: 3 }], () => files.write('a/deep/two', { n: 3 }))
      await step(['none', { n: 3 }], () => files.remove('a/one'))
      await step([{ n: 4 }, { n: 3 }], () => files.write('a/one', { n: 4 }))
    },
    found: async folder => {
      const files = new FileStore(join(folder, 'files'), await openSeal(join(folder, 'keys', 'machine.key')))
      return [(await files.read('a/one')) ?? 'none', (await files.read('a/deep/two')) ?? 'none']
    },
  }),
)

t.test('a power cut during writes of settings, beginning without a file', options, t =>
  cutEverywhere<object>(t, {
    first: {},
    drive: async (folder, promised) => {
      const file = new SettingsFile(folder)
      const save = (keys: { [key: string]: unknown }) => promised.step(keys, () => file.save({ keys, mode: 0o644 }))
      await save({ one: 1 })
      await save({ one: 1, two: 'x'.repeat(500) })
      await save({ three: 3 })
      await promised.loose({}, async () => rmSync(join(folder, '.sandbox'), { recursive: true }))
      await save({ four: 4 })
    },
    found: async folder => {
      const file = new SettingsFile(folder)
      const { keys, wrong } = await file.load()
      if (wrong) throw new Error(wrong)
      return keys
    },
  }),
)

/** A line with a hole is not an entry: the record continues in another segment. */
const whole = (line: string): boolean => !line.includes('\0')

t.test('a power cut during writes of the activity record', options, t =>
  cutEverywhere<unknown>(t, {
    first: {},
    drive: async (folder, promised: Promised<unknown>) => {
      const segments = new Segments(join(folder, 'activity'), 'days')
      await promised.step({ '2026-01-01': [1] }, () => segments.append('2026-01-01', [1] as never[]))
      await promised.step({ '2026-01-01': [1, 2] }, () => segments.append('2026-01-01', [2] as never[]))
      await promised.step({ '2026-01-01': [1, 2], '2026-01-02': [3] }, () =>
        segments.append('2026-01-02', [3] as never[]),
      )
      await promised.step({ '2026-01-01': [2], '2026-01-02': [3] }, () =>
        segments.replace('2026-01-01', [2] as never[]),
      )
      await promised.step({ '2026-01-02': [3] }, () => segments.remove('2026-01-01'))
      await segments.close()
    },
    found: async folder => {
      const segments = new Segments(join(folder, 'activity'), 'days')
      const found: { [name: string]: unknown[] } = {}
      for (const name of await segments.names()) {
        const lines: unknown[] = []
        for await (const bytes of segments.forwards(name))
          lines.push(
            ...bytes
              .toString()
              .split('\n')
              .slice(0, -1)
              .filter(whole)
              .map(line => JSON.parse(line) as unknown),
          )
        if (lines.length > 0) found[name] = lines
      }
      await segments.close()
      return found
    },
  }),
)

t.test('a power cut during moves that are planned, then carried out', options, async t => {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return 'none'
    }
  }
  const plan = (folder: string) =>
    planMoves(join(folder, 'data', 'moves.json'), {
      away: [{ from: join(folder, 'tree'), to: join(folder, 'old/deep/tree') }],
      in: [{ from: join(folder, 'new'), to: join(folder, 'tree') }],
    })
  await cutEverywhere<string[]>(t, {
    first: ['before', 'none', 'carried out'],
    before: folder => {
      for (const name of ['data', 'tree', 'new']) mkdirSync(join(folder, name))
      writeFileSync(join(folder, 'tree', 'a'), 'before')
      writeFileSync(join(folder, 'new', 'a'), 'after')
    },
    drive: async (folder, promised) => {
      await promised.step(['after', 'before', 'planned'], () => plan(folder))
      await promised.step(['after', 'before', 'carried out'], () => carryOut(join(folder, 'data', 'moves.json')))
    },
    found: async folder => {
      const path = join(folder, 'data', 'moves.json')
      // The plan contains absolute paths, and this is another folder.
      const text = read(path)
      if (text !== 'none') writeFileSync(path, text.replaceAll('/disk/', '/disk-cut/'))
      await carryOut(path)
      return [
        read(join(folder, 'tree/a')),
        read(join(folder, 'old/deep/tree/a')),
        text === 'none' ? 'carried out' : 'planned',
      ]
    },
  })
})

t.test('a power cut during the restore of a group', options, t => {
  const take = (folder: string) =>
    takeReturned(join(folder, 'data'), 'agent', async (returned, names) => {
      const texts = await Promise.all(names.map(name => readFile(join(returned, name), 'utf8')))
      await writeAtomic(join(folder, 'state'), texts.join(), { flush: true })
    })
  return cutEverywhere<string>(t, {
    first: 'one,two',
    before: folder => {
      mkdirSync(join(folder, 'data/returned/agent'), { recursive: true })
      for (const name of ['one', 'two']) writeFileSync(join(folder, 'data/returned/agent', name), name)
    },
    drive: async (folder, promised) => {
      await promised.step('one,two', () => take(folder))
      await promised.step('later', () => writeAtomic(join(folder, 'state'), 'later', { flush: true }))
    },
    found: async folder => {
      await take(folder)
      return readFile(join(folder, 'state'), 'utf8')
    },
  })
})
