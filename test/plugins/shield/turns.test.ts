import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import type { ShieldPolicy } from '../../../plugins/shield/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, makeWorkspace, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { ModelServer, type ScriptedReply, type SeenRequest } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'
import { inner, transcript } from '../agent/support.js'
import { shieldPolicy } from './support.js'

const ALICE = 'alice@example.net'
const IBAN = 'DE89 3704 0044 0532 0130 00'
const CARD = '4111 1111 1111 1111'
const WRONG_CARD = '4111 1111 1111 1112'

/** Servers for models that answer by the script of the test that runs. */
let script: (request: SeenRequest, nth: number) => ScriptedReply
let server: ModelServer
let daemon: Support
let folders: { workspace: string; data: string }

const GROUPS = ['agent', 'agents', 'shield', 'secrets', 'system', 'areas', 'activity', 'sessions']

const start = async (): Promise<void> => {
  daemon = await daemonWith(t, GROUPS, {
    ...folders,
    fakes: {
      'endpoints.choices': () => ({
        endpoints: ['cloud', 'other', 'here'].map(id => ({
          ...{ id, label: id, default: 'm', ready: true },
          models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
        })),
      }),
      'endpoints.target': ({ id }) => server.target({ id, local: id === 'here' }),
      'usage.record': () => ({ ok: true }),
      'usage.admit': () => ({ verdict: 'ok' }),
      'capabilities.records': ({ kind }) => ({
        capabilities:
          kind === 'localmodel'
            ? [{ id: 'here', kind: 'localmodel', label: 'Here', config: {}, secrets: [] }]
            : [{ id: 'tool', kind: 'agent', label: 'Tool', config: {}, secrets: [] }],
      }),
    },
  })
}

t.before(async () => {
  server = await new ModelServer('openai', (request, nth) => script(request, nth)).listen(t)
  const root = folderOf(t)
  folders = { workspace: join(root, 'workspace'), data: join(root, 'data') }
  makeWorkspace(folders.workspace)
  await start()
  await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
})

const set = (more: Partial<ShieldPolicy> = {}) => daemon.client.call('POST /shield', { policy: shieldPolicy(more) })

/** Runs a turn; returns its frames and what it sent. */
const turn = async (conversationId: string, prompt: string, more: object = {}) => {
  const from = server.requests.length
  const { run } = await daemon.client.call('POST /agent', {
    ...{ conversationId, prompt, agent: 'endpoint/cloud', permissionMode: 'bypassPermissions' },
    ...more,
  })
  const frames = (await framesOf(daemon.client, conversationId, { run }).all()).map(({ event }) => event)
  return { frames, sent: server.requests.slice(from) }
}

const prose = (frames: readonly Frame[]): string =>
  frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')
const words = (sent: readonly SeenRequest[]): string => JSON.stringify(sent.map(({ body }) => body.messages))

t.test('personal data leaves as tokens, and comes back as it was, whole in the record', async t => {
  await set()
  script = () => ({ text: ['Sure: ', ...'I write to [[EMAIL_1]].'] })
  const { frames, sent } = await turn('a', `Mail ${ALICE}, ${IBAN}, ${CARD}, ${WRONG_CARD}`)
  t.match(words(sent), /Mail \[\[EMAIL_1\]\], \[\[IBAN_1\]\], \[\[CARD_1\]\], 4111 1111 1111 1112/)
  t.notMatch(JSON.stringify(sent), /alice@|DE89 3704|4111 1111 1111 1111/)
  t.equal(prose(frames), `Sure: I write to ${ALICE}.`)
  t.match(
    frames.filter(({ kind }) => kind === 'notice'),
    exactly({ source: 'shield', counts: { EMAIL: 1, IBAN: 1, CARD: 1 } }),
  )
  const { messages } = await transcript(daemon, 'a')
  t.match(messages, exactly({ text: new RegExp(`${ALICE}, ${IBAN}, ${CARD}`) }, { text: new RegExp(ALICE) }))
})

t.test('a tool gets the real value, and its result leaves masked with the same token', async t => {
  const name = 'Ann "A\\B" Lee'
  const list = {
    ...{ id: 'l', label: 'L', kind: 'PERSON', values: [name] },
    ...{ wholeWord: false, caseSensitive: true },
  }
  await set({ lists: [list] })
  const write = { name: 'Write', input: { path: 'who.txt', content: 'by [[PERSON_1]]' } }
  script = (_, nth) =>
    nth === first ? { calls: [{ name: 'Shell', input: { command: 'echo [[EMAIL_1]]' } }, write] } : { text: ['Done.'] }
  const first = server.requests.length
  const { frames, sent } = await turn('b', `Echo ${ALICE} for ${name}`)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  const results = frames.filter(({ kind }) => kind === 'tool_call_update')
  t.match(JSON.stringify(results), new RegExp(ALICE), 'the shell printed the real address')
  t.match(words(sent.slice(1)), /"role":"tool"[^}]*\[\[EMAIL_1\]\]/)
  t.notMatch(words(sent), new RegExp(ALICE))
  t.equal(readFileSync(join(folders.workspace, 'who.txt'), 'utf8'), `by ${name}`)
})

t.test('a value keeps its token in later turns, at another provider, and after a restart', async t => {
  await set()
  script = () => ({ text: ['Yes.'] })
  await turn('c', `First bob@example.net`)
  t.match(words((await turn('c', `Then ${ALICE}`)).sent), /First \[\[EMAIL_1\]\].*Then \[\[EMAIL_2\]\]/)
  await daemon.stop()
  await start()
  const { sent } = await turn('c', `Again ${ALICE}`, { agent: 'endpoint/other' })
  t.match(words(sent), /First \[\[EMAIL_1\]\].*Again \[\[EMAIL_2\]\]/)
  t.match(words((await turn('d', `Only ${ALICE}`)).sent), /Only \[\[EMAIL_1\]\]/, 'others number for themselves')
  const rows = (await daemon.client.call('GET /shield/conversations/{id}', { id: 'c' })).tokens
  // Two texts have each: the first message goes to the other provider without the notes of its turn.
  t.match(rows, exactly({ token: '[[EMAIL_1]]', uses: 2 }, { token: '[[EMAIL_2]]', uses: 2 }))
  const fork = { forkOf: { conversationId: 'c', keep: 2, files: 'now' } }
  t.match(words((await turn('f', `More ${ALICE}`, fork)).sent), /First \[\[EMAIL_1\]\].*More \[\[EMAIL_2\]\]/)
})

t.test('a model of this machine gets real values, and what does not pass the shield is refused', async t => {
  script = () => ({ text: ['Yes.'] })
  const trusted = async () => (await daemon.client.call('GET /shield/stats', {})).requests.trusted
  const before = await trusted()
  t.match(words((await turn('e', `Mail ${ALICE}`, { agent: 'endpoint/here' })).sent), new RegExp(`Mail ${ALICE}`))
  t.equal((await trusted()) - before, 1)
  const { frames } = await turn('p', 'hello', { agent: 'agent/tool' })
  t.match(
    frames.filter(({ kind }) => kind === 'error'),
    exactly({ message: /agent\/tool sends does not pass the privacy shield/ }),
  )
})

t.test('a request with what is blocked never leaves, and its error names the kind alone', async t => {
  await set()
  await turn('g', `Remember ${ALICE}`)
  await set({ detectors: { email: 'block' } })
  const { frames, sent } = await turn('g', 'What was it?')
  t.equal(sent.length, 0)
  const errors = frames.filter(({ kind }) => kind === 'error')
  t.match(errors, exactly({ message: /refuses requests with EMAIL$/ }))
  t.notMatch(JSON.stringify(errors), /alice/)
})

t.test('a replay counts by detector what a policy would change, and stores nothing', async t => {
  await set()
  script = () => ({ text: ['Fine.'] })
  for (const id of ['r1', 'r2', 'r3']) await turn(id, `${id}: Vita Nicolson, ${IBAN}, ${ALICE}`)
  const list = {
    ...{ id: 'people', label: 'People', kind: 'PERSON', values: ['Vita Nicolson'] },
    ...{ wholeWord: true, caseSensitive: false },
  }
  const policy = shieldPolicy({ lists: [list], detectors: { iban: 'off', email: 'block' } })
  const [stored, requests] = [storedTokens(), server.requests.length]
  const conversations = ['r1', 'r2', 'r3']
  const found = await daemon.client.call('POST /shield/replay', { policy, conversations })
  t.match(found, {
    ...{ conversations: 3, requests: 3, truncated: false, providers: exactly() },
    detectors: exactly(
      {
        detector: 'list',
        source: 'people',
        masked: 3,
        added: 3,
        dropped: 0,
        distinct: 1,
        hints: exactly('V*** ********'),
      },
      { detector: 'email', blocked: 3, dropped: 3, masked: 0 },
      { detector: 'iban', masked: 0, added: 0, dropped: 3 },
    ),
    refused: exactly(
      ...conversations.map(conversationId => ({ conversationId, requests: 1, kinds: exactly('EMAIL') })),
    ),
  })
  t.notMatch(JSON.stringify(found), /Vita|alice|DE89/)
  t.equal(storedTokens(), stored)
  t.equal(server.requests.length, requests)
  t.match(await refusalOf(() => daemon.client.call('POST /shield/replay', { policy, conversations: ['none'] })), {
    ...{ status: 404, message: /"none"/ },
  })
  await set({ lists: [list], detectors: { iban: 'off' } })
  t.match(words((await turn('r1', 'Go on')).sent), /r1: \[\[PERSON_1\]\], DE89 3704 0044 0532 0130 00, \[\[EMAIL_1\]\]/)
})

t.test('purging a conversation destroys its tokens', async t => {
  await set()
  await turn('z', `Mail ${ALICE}`)
  t.match((await inner(daemon, 'shield.known', { conversationId: 'z' })).tokens, exactly({ value: ALICE }))
  await daemon.client.call('POST /agents/archive', { ids: ['z'] })
  await daemon.client.call('POST /agents/purge', { ids: ['z'] })
  t.match((await inner(daemon, 'shield.known', { conversationId: 'z' })).tokens, exactly())
})

t.test('no value is in clear outside records, sessions and the workspace', async t => {
  for (const folder of ['journals/shield', 'files'].map(name => join(folders.data, name)))
    t.notMatch(bytesBelow(folder), /alice@example|4111 1111 1111 1111|Vita Nicolson/, folder)
  t.notMatch(daemon.logged.join('\n'), /alice@example|4111 1111 1111 1111|Vita Nicolson/)
})

const bytesBelow = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')

const storedTokens = (): string => bytesBelow(join(folders.data, 'journals/shield'))
