import t from 'tap'
import { admitTurn, reachOfTurn } from '../../../../plugins/agent/networks/turn-reach.js'
import { refusalOf } from '../../../kernel/auth/memory.js'
import { exactly } from '../../../support/lists.js'

const ALL = { powers: { sandbox: true }, capabilities: ['mail'] }

/** What a turn reaches whose parts these are. */
const reach = ({
  message = {},
  outsiders = false,
  openedByToken,
  persona,
  folders,
}: {
  readonly message?: object
  readonly outsiders?: boolean
  readonly openedByToken?: string
  readonly persona?: object
  readonly folders?: readonly object[]
} = {}) =>
  reachOfTurn(
    {
      message: { lands: true, from: 'session', attended: true, input: {}, ...message },
      entry: { fields: { outsiders } },
    } as never,
    { ...(openedByToken !== undefined && { openedByToken }) },
    { persona: persona as never, folders },
  )

t.test('what a turn reaches follows from its persona, its folders and who spoke in it', async t => {
  t.same(reach(), { sandbox: true, accounts: true })
  t.same(reach({ persona: ALL }), { sandbox: true, accounts: true, capabilities: ['mail'] })
  for (const [what, parts] of Object.entries({
    'a stranger began it': { message: { input: { outsideWake: 'webchat' } } },
    'somebody who may not land spoke in it': { outsiders: true },
    'the program of an extension began it': { message: { from: 'extension', lands: undefined } },
    'a token opened the conversation': { openedByToken: 'x' },
    'it is limited to folders': { folders: [] },
    'its persona sees some repositories': { persona: { ...ALL, repos: ['a'] } },
    'its persona lacks the power': { persona: { ...ALL, powers: { sandbox: false } } },
  }))
    t.equal(reach(parts).sandbox, false, what)
  t.same(
    reach({ message: { lands: undefined } }),
    { sandbox: true, accounts: true, capabilities: [] },
    'no codes of other people',
  )
  t.match(reach({ message: { attended: false } }), { sandbox: true, accounts: false }, 'no accounts of people')
  t.same(
    reach({ outsiders: true, persona: ALL }),
    { sandbox: false, accounts: true, capabilities: ['mail'] },
    'a card names its own all the same',
  )
})

t.test('a turn changes the network where maintainers alone spoke and the policy allows it', async t => {
  const admitted = async ({
    verdict = 'allow',
    message: begun = {},
    byOutsiders = false,
    landsAlone = true,
    byTokens = false,
    spoken = {},
  }: {
    readonly verdict?: string
    readonly message?: object
    readonly byOutsiders?: boolean
    readonly landsAlone?: boolean
    readonly byTokens?: boolean
    readonly spoken?: object
  }) => {
    const asked: unknown[] = []
    const message = { from: 'session', attended: true, ...begun }
    const turn = { run: 'r', byOutsiders, byTokens, message, outside: 'a page' }
    const host = {
      serves: async () => true,
      call: async (_: string, input: unknown) => (asked.push(input), { verdict, reason: 'a rule says so' }),
    }
    const conversations = { find: () => ({ landsAlone, actsAs: 'ops', ...spoken }) }
    const deps = { host, engine: { live: (id: string) => (id === 'c' ? turn : undefined) }, conversations } as never
    const what = { type: 'vpn', text: 'connect office' } as const
    t.match(await refusalOf(() => admitTurn(deps, { ...what, conversationId: 'other' })), { status: 404 })
    await admitTurn(deps, { ...what, conversationId: 'c' })
    return asked
  }
  t.match(
    await admitted({}),
    exactly({
      subject: { kind: 'action', provider: 'sandbox', type: 'vpn', text: 'connect office' },
      context: { conversationId: 'c', run: 'r', persona: 'ops', unattended: false, outside: 'a page' },
    }),
  )
  for (const parts of [
    { verdict: 'hold' },
    { verdict: 'deny' },
    { message: { from: 'token' } },
    { message: { from: 'plugin' } },
    { byTokens: true },
    { spoken: { heardTokens: true } },
    { spoken: { openedByToken: 'x' } },
    { byOutsiders: true },
    { landsAlone: false },
  ])
    t.match(await refusalOf(() => admitted(parts)), { status: 403, message: /POST \/approvals/ }, JSON.stringify(parts))
})
