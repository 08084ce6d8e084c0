import { createHash } from 'node:crypto'
import t from 'tap'
import { VisitorBudgets } from '../../../plugins/automations/webchat/budgets.js'
import { Challenges } from '../../../plugins/automations/webchat/challenges.js'
import { ChatSites } from '../../../plugins/automations/webchat/sites.js'
import { ThreadReaders } from '../../../plugins/automations/webchat/thread-readers.js'
import { inkOn } from '../../../plugins/console/web/widget/ink.js'
import { solved } from '../../../plugins/console/web/widget/proof.js'
import { Refusal } from '../../../sdk/index.js'

const BOUND = { automationId: 'shop', thread: 'thread-of-a-visitor' }
const NEVER = new AbortController().signal
const MINUTE = 60_000
const HOUR = 60 * MINUTE

const zeroBits = (text: string): number => {
  const bits = [...createHash('sha256').update(text).digest()].map(byte => byte.toString(2).padStart(8, '0')).join('')
  return bits.indexOf('1')
}
const refusalOf = (work: () => void): string | undefined => {
  try {
    return void work()
  } catch (error) {
    return `${Refusal.from(error).status} ${Refusal.from(error).message}`
  }
}
const memory = () => {
  const kept = new Map<string, unknown>()
  const set = async (key: string, value: unknown) => void kept.set(key, structuredClone(value))
  return { kept, store: { set, delete: async (key: string) => void kept.delete(key) } }
}
/** A solution with exactly so many zero bits. */
const withBits = (salt: string, bits: number): string => {
  for (let nonce = 0; ; nonce++) if (zeroBits(`${salt}:${nonce}`) === bits) return `${salt}:${nonce}`
}

t.test('the script of the page finds what an independent hash confirms', async t => {
  const salts = ['a', 'b'.repeat(54), 'c'.repeat(55), 'd'.repeat(63), 'e'.repeat(64), 'é'.repeat(70), 'f'.repeat(119)]
  for (const salt of salts) {
    const found = (await solved(salt, 11, NEVER, async () => {}))!
    t.ok(found.startsWith(`${salt}:`) && zeroBits(found) >= 11, `${salt.length} characters`)
  }
})

t.test('a solved puzzle admits once, for its thread and chat alone, while it is young', async t => {
  let now = 1_000_000_000_000
  const challenges = new Challenges(() => now)
  const { salt, difficulty, expiresAt } = challenges.make(BOUND, 'a', 0)
  t.same([difficulty, expiresAt], [16, now + 15 * MINUTE])
  const right = (await solved(salt, difficulty, NEVER, async () => {}))!
  const judge = (answer: string | undefined, bound = BOUND) => refusalOf(() => challenges.assertSolved(answer, bound))
  t.equal(judge(right), undefined)
  t.equal(judge(right), undefined, 'judging spends nothing')
  t.match(judge(right, { ...BOUND, thread: 'another-thread-of-it' }), /^403 .*of this thread, found another/)
  t.match(judge(right, { ...BOUND, automationId: 'other' }), /^403 .*of this thread, found another/)
  t.match(judge(withBits(salt, 15)), /^403 .*expected 16 zero bits/, 'one bit short')
  t.match(judge(undefined), /^403 .*found none/)
  const [at = '', random = '', rest = ''] = right.split('.')
  const forged = [
    ...['x', '', `${right}:`, `${right} `, `.${right}`, right.replace('.', ':'), right.toUpperCase(), `${right}é`],
    ...[
      `${Number(at) + 1}.${random}.${rest}`,
      `${at}.01${random.slice(2)}.${rest}`,
      `${at}.${random}.${'A'.repeat(43)}:0`,
    ],
  ]
  for (const answer of forged) t.match(judge(answer), /^403 /, answer)
  t.match(
    refusalOf(() => new Challenges(() => now).assertSolved(right, BOUND)),
    /^403 /,
    'of another run of the daemon',
  )
  now += 15 * MINUTE + 1
  t.match(judge(right), /^403 .*too old/)
  now -= 16 * MINUTE
  t.match(judge(right), /^403 .*too old/, 'made in the future')
  now += MINUTE
  challenges.use(right)
  t.match(judge(right), /^403 .*used before/)
  t.match(judge(`${salt}:zzz`), /^403 .*used before/, 'also with another nonce')
})

t.test('who opens a thousand threads meets harder puzzles, then the limits of a minute and a day', async t => {
  let now = 1_000_000_000_000
  const clock = () => now
  const challenges = new Challenges(clock)
  const { store, kept } = memory()
  const budgets = new VisitorBudgets(store, clock)
  const seen: number[] = []
  const ends = { minute: 0, day: 0, messages: 0 }
  for (let thread = 0; thread < 1000; thread++) {
    now += 2000
    const { difficulty } = challenges.make({ ...BOUND, thread: `${thread}` }, 'scraper', budgets.used('shop', 50))
    seen.push(difficulty)
    if (refusalOf(() => budgets.challenge.spend('scraper'))) ends.minute += 1
    await budgets.spendDay('shop', 50).then(
      () => (ends.messages += 1),
      error => {
        const { retryAfter } = Refusal.from(error).detail
        if (retryAfter === 86_400 - Math.floor((now % 86_400_000) / 1000)) ends.day += 1
      },
    )
  }
  t.same(
    seen,
    seen.toSorted((one, other) => one - other),
    'it never gets easier',
  )
  t.same([seen[0], seen.at(-1), Math.max(...seen)], [16, 22, 22])
  t.same([ends.messages, ends.day], [50, 950])
  for (let at = 0; at < 31; at++) if (refusalOf(() => budgets.challenge.spend('fast'))) ends.minute += 1
  t.equal(ends.minute, 1)
  t.equal(challenges.make(BOUND, 'somebody', 0).difficulty, 16, 'others pay nothing for it')
  t.equal(challenges.make(BOUND, 'somebody', 0.51).difficulty, 17)
  t.equal(challenges.make(BOUND, 'somebody', 1).difficulty, 22)
  now += 2 * HOUR
  t.equal(challenges.make(BOUND, 'scraper', 0).difficulty, 16, 'an hour later it is forgiven')
  const again = new VisitorBudgets(store, clock)
  again.load([...kept])
  t.equal(again.used('shop', 50), 1, 'the count of a day outlives a restart')
  now += 24 * HOUR
  t.equal(again.used('shop', 50), 0)
})

t.test('origins are counted for a hundred sites at most, real ones last', async t => {
  let now = 1_000_000_000_000
  const news: string[] = []
  const { store: plain, kept } = memory()
  const writes: string[] = []
  const store = { ...plain, set: (key: string, value: unknown) => (writes.push(key), plain.set(key, value)) }
  const sites = new ChatSites({ now: () => now, store, seen: id => void news.push(id) })
  await sites.count('shop', 'https://shop.example', 'loads')
  await sites.count('shop', 'https://shop.example', 'loads')
  for (let at = 0; at < 300; at++) {
    now += 1
    await sites.count('shop', `https://evil-${at}.example`, 'refused')
  }
  await sites.count('shop', 'not an origin', 'refused')
  await sites.count('shop', `https://${'a.'.repeat(200)}example`, 'refused')
  t.ok(writes.length <= 2, `${writes.length} writes: a stranger's new origin alone costs none`)
  const found = sites.of('shop', ['https://shop.example'])
  t.ok(found.every(({ origin }) => origin.length < 300))
  t.equal(found.length, 100)
  t.match(
    found.find(({ allowed }) => allowed),
    { origin: 'https://shop.example', loads: 2, refused: 0 },
  )
  t.equal(news.length, 301)
  now += HOUR
  await sites.count('shop', 'https://shop.example', 'loads')
  t.equal(news.length, 302)
  await sites.flush()
  const again = new ChatSites({ now: () => now, store, seen: () => {} })
  again.load([...kept])
  t.same(again.of('shop', undefined).length, 100)
  await again.forget('shop')
  t.equal(kept.size, 0)
})

t.test(
  'who joins in the middle of an answer gets what was said of it, once; a whole answer ends its pieces',
  async t => {
    const readers = new ThreadReaders()
    const first = readers.enter('one')
    readers.say('one', 1, 'a')
    readers.say('one', 1, 'b')
    const late = readers.enter('one')
    readers.say('one', 1, 'c')
    t.same([first.take(), late.take()], [[{ seq: 1, text: 'abc' }], [{ seq: 1, text: 'abc' }]])
    readers.say('one', 1, 'd')
    readers.whole('one')
    t.same([first.take(), readers.enter('one').take()], [[], []])
    t.equal(readers.count('one'), 3)
    readers.end('one')
    t.ok(late.gone)
  },
)

t.test('words on a colour can be read', async t => {
  for (const [colour, ink] of [
    ['#fff', '#000'],
    ['#000000', '#fff'],
    ['#2563eb', '#fff'],
    ['#ff0', '#000'],
  ] as const)
    t.equal(inkOn(colour), ink, colour)
})
