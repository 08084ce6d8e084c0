import t from 'tap'
import { Sites } from '../../../plugins/capabilities/sites/site-kind.js'

/** Sites with a browser group in memory, whose windows end as real ones do: the event comes while the call runs. */
const world = () => {
  const kept = new Map<string, unknown>()
  const open = new Map<string, string>()
  const signedIn: string[] = []
  const entry = {
    id: 'inbox',
    kind: 'browser',
    label: 'Inbox',
    config: { platform: 'site', url: 'http://example.org/' },
  }
  const ended = async (profile: string) => {
    const name = open.get(profile)
    if (name === undefined) return
    open.delete(profile)
    await sites.ended(name)
  }
  const calls: { readonly [call: string]: (input: never) => unknown } = {
    'browsers.list': () => ({ sessions: [...open].map(([server, name]) => ({ server, name, running: true })) }),
    'browsers.open': ({ name, profile }: { name: string; profile: string }) => void open.set(profile, name),
    'browsers.end': ({ name }: { name: string }) => ended([...open].find(each => each[1] === name)![0]),
    'browsers.forget': ({ profile }: { profile: string }) => ended(profile),
    'activity.record': ({ type, extra }: { type: string; extra: { id: string } }) => {
      if (type === 'capability.signed-in') signedIn.push(extra.id)
    },
  }
  const host = {
    call: async (call: string, input: never) => calls[call]!(input),
    serves: async () => true,
    store: {
      get: async (key: string) => kept.get(key),
      set: async (key: string, value: unknown) => void kept.set(key, value),
      delete: async (key: string) => void kept.delete(key),
      all: async () => [...kept],
    },
    signal: new AbortController().signal,
    log: { error: () => {} },
  } as never
  const entries = {
    all: async () => [entry],
    find: async () => entry,
    get: async () => entry,
    isAccepted: async () => true,
  }
  const sites: Sites = new Sites(host, {
    cards: { brought: () => undefined, mark: () => undefined },
    entries: () => entries as never,
    status: async () => ({ state: 'active', checkedAt: 0 }),
  })
  const [browser] = sites.kinds
  return { sites, browser: browser!, signedIn, kept, closed: ended, profile: () => [...open.keys()][0]! }
}

t.test('a window that a person closes is one sign-in, and so is one that a call finishes', async t => {
  const { sites, signedIn, closed, profile } = world()
  await sites.login('inbox')
  await closed(profile())
  t.same(signedIn, ['inbox'])
  const { session } = await sites.login('inbox')
  await sites.finish('inbox', session, false)
  t.same(signedIn, ['inbox', 'inbox'])
  const { session: other } = await sites.login('inbox')
  await sites.finish('inbox', other, true)
  t.same(signedIn, ['inbox', 'inbox'], 'a cancelled one is none')
  await sites.login('inbox')
  await closed(profile())
  t.equal(signedIn.length, 3, 'and the next counts again')
})

t.test('a connection that is removed while its window is open is not signed in', async t => {
  const { sites, browser, signedIn, kept } = world()
  await sites.login('inbox')
  await browser.forget!('inbox')
  t.same([signedIn, [...kept]], [[], []])
})
