import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { UnknownOutcome, type Executor } from '../../../plugins/approvals/executors/executor.js'
import { endPosting, outcomeIn, personaTurn } from '../../../plugins/approvals/executors/persona-turn.js'
import { Refusal } from '../../../sdk/index.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { modelServer, type ScriptedReply, type SeenRequest } from '../../support/servers/model-server.js'
import { itemIn } from './support.js'

const ADDRESS = 'https://forum.example/t/42'
/** How the model works on a post, by its content. */
const ANSWERS: { readonly [word: string]: readonly ScriptedReply[] } = {
  'fine words': [{ calls: [{ name: 'List', input: { path: '.' } }] }, { text: [`It is out.\n\nposted: ${ADDRESS}`] }],
  'unfit words': [{ text: ['not posted: the title is too long'] }],
  'vague words': [{ text: ['I did what I could.'] }],
  'slow words': [{ silent: true }],
  'breaks here': [{ status: 400, body: '{"error":"no such model"}' }],
}
const requests: SeenRequest[] = []
const server = await modelServer(t, 'openai', request => {
  if (!request.text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
  requests.push(request)
  const asked = JSON.stringify(request.body.messages)
  const word = Object.keys(ANSWERS).find(each => asked.includes(each))!
  return ANSWERS[word]![request.body.messages!.filter(({ role }) => role === 'assistant').length]!
})
const row = { id: 'm', label: 'M', efforts: [], badges: [] }
const groups = ['approvals', 'agent', 'agents', 'activity', 'settings', 'personas', 'skills', 'safety']
const { client, workspace } = await daemonWith(t, groups, {
  files: { 'photo.txt': 'a picture\n' },
  fakes: {
    'capabilities.records': () => ({
      capabilities: [{ id: 'forum', kind: 'browser', label: 'Forum', config: {}, secrets: [] }],
    }),
    'endpoints.choices': () => ({
      endpoints: [{ id: 'local', label: 'Local', models: [row], default: 'm', ready: true }],
    }),
    'endpoints.target': () => server.target(),
  },
})
const models = [{ provider: 'endpoint/local', model: 'm' }]
await client.call('POST /personas', { id: 'ada', capabilities: ['forum'], models })
await client.call('POST /personas', { id: 'mute', capabilities: [], models })

const propose = (content: string, more: object = {}, actsAs = 'ada') =>
  client.call('POST /approvals', { kind: 'post', post: { platform: 'forum', content, ...more }, actsAs })
const send = async (content: string, more: object = {}) => {
  const item = await propose(content, more)
  t.match(item, { via: 'turn', problem: undefined })
  await client.call('POST /approvals/{id}/approve', { id: item.id, digest: item.digest, now: true })
  return itemIn(client, item.id, 'done', 'failed')
}

t.test('a post that only a persona can publish is published by its conversation, once, and answered by it', async t => {
  const item = await send('fine words', { target: 'news', title: 'Hello', media: ['photo.txt'] })
  t.match(item, { status: 'done', url: ADDRESS, attempts: exactly({ via: 'turn', outcome: 'done', url: ADDRESS }) })
  const { conversationId = '', run } = item.attempts[0]!
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: conversationId })
  const [asked] = messages
  t.match(asked, { role: 'user', run, attachments: exactly(/approvals\/post-.*\/1-photo\.txt$/) })
  t.match(asked?.text, /"target": "news",\n {2}"title": "Hello",\n {2}"content": "fine words"/)
  t.match(await client.call('GET /agents/{id}', { id: conversationId }), { actsAs: 'ada', model: 'm', turns: 1 })
  t.notOk(existsSync(join(workspace, '.sandbox/records/approvals', conversationId)), 'its files are gone')
})

t.test('what the conversation did not publish has failed with its reason, and a retry is another one', async t => {
  const item = await send('unfit words')
  t.match(item, { status: 'failed', attempts: exactly({ outcome: 'failed', error: 'the title is too long' }) })
  const { id, digest } = item
  await client.call('POST /approvals/{id}/approve', { id, digest, now: true })
  let again = await itemIn(client, id, 'failed')
  while (again.attempts.length < 2) again = await itemIn(client, id, 'failed')
  t.not(again.attempts[1]!.conversationId, again.attempts[0]!.conversationId)
})

t.test('without a clear last line, or with a turn that failed, it may have gone out', async t => {
  for (const [words, error] of [
    ['vague words', /does not say that it was posted; it may have gone out/],
    ['breaks here', /is failed .*; it may have gone out/],
  ] as const) {
    const item = await send(words)
    t.match(item, { status: 'failed', attempts: exactly({ via: 'turn', outcome: 'unknown', error }) })
  }
})

t.test(
  'a stopped conversation has not said that it was posted, and a persona without accounts posts nothing',
  async t => {
    const before = requests.length
    const item = await propose('fine words', {}, 'mute')
    t.match(item, { via: 'nobody', problem: /persona mute speaks for no connected account/ })
    const { id, digest } = item
    t.match(await refusalOf(() => client.call('POST /approvals/{id}/approve', { id, digest })), { status: 424 })
    t.equal(requests.length, before)
  },
)

t.test('a turn that publishes what was approved takes no words of anybody', async t => {
  const { id, digest } = await propose('slow words')
  await client.call('POST /approvals/{id}/approve', { id, digest, now: true })
  const { attempts } = await itemIn(client, id, 'sending')
  const { conversationId = '' } = attempts[0]!
  const others = 'Post "buy now" as well.'
  while (!requests.some(({ text }) => text.includes('slow words')))
    await new Promise(resolve => setTimeout(resolve, 20))
  t.match(await refusalOf(() => client.call('POST /agent/steer', { conversationId, text: others })), {
    status: 409,
    message: 'this turn publishes what was approved, word for word',
  })
  t.match(await client.call('POST /agent', { conversationId, prompt: others }), { delivery: 'queued' })
  await client.call('POST /agent/stop', { conversationId })
  t.match(await itemIn(client, id, 'failed'), { attempts: exactly({ outcome: 'unknown' }) })
  t.notOk(requests.some(({ text }) => text.includes('buy now')))
})

t.test('the outcome is what the last line says', t => {
  const of = (report: string) => {
    try {
      return outcomeIn(report, 'c').url ?? 'posted'
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`
    }
  }
  t.equal(of('posted: https://a.example/1.'), 'https://a.example/1')
  t.equal(of('**Posted**'), 'posted')
  t.equal(of('posted\n\n- posted: <https://a.example/2>\n'), 'https://a.example/2')
  t.match(of('posted\nnot posted: no sign-in'), /^Refusal: no sign-in$/)
  t.match(of('Not posted'), /c did not say why/)
  for (const report of ['', 'unknown: the page hung', 'I posted it', 'reposted: x'])
    t.match(of(report), /^UnknownOutcome/)
  t.end()
})

const ITEM = { id: 'a', kind: 'post', post: { platform: 'forum', content: 'hi' }, actsAs: 'ada' }

/** A post as a persona where the calls answer as told; `calls` are those that were made. */
const postWith = async (workspace: string, answers: { readonly [call: string]: () => unknown } = {}) => {
  const calls: string[] = []
  const call = async (name: string) => {
    calls.push(name)
    if (name === 'personas.forTurn') return { known: true, capabilities: ['forum'] }
    return answers[name]?.() ?? {}
  }
  const host = { place: { workspace }, serves: async (name: string) => name === 'personas.forTurn', call }
  const found = await personaTurn(host as never, { read: async () => [] } as never, ITEM as never)
  return { executor: found as Executor, calls }
}

t.test('a turn that ended otherwise does not go on later, and a lost one may have posted', async t => {
  const lost = () => {
    throw new Refusal('unavailable', 'the group is not running')
  }
  const none = async function* () {}
  for (const [answers, message] of [
    [{ 'agent.words': none, 'agent.fate': () => ({ open: false, end: 'failed' }) }, /is failed$/],
    [{ 'agent.words': lost }, /was lost: the group is not running/],
    [{ 'agent.words': lost, 'POST /agent/stop': lost }, /was lost/],
  ] as const) {
    const { executor, calls } = await postWith(t.testdir({}), answers)
    const failure = await executor.carryOut('a-1', new AbortController().signal).catch((error: unknown) => error)
    t.ok(failure instanceof UnknownOutcome, String(failure))
    t.match((failure as Error).message, message)
    t.ok(calls.includes('POST /agent/stop'))
  }
})

t.test('nobody knows the conversation of a post before, and a killed daemon leaves no files of it', async t => {
  const ids = await Promise.all([1, 2].map(async () => (await postWith(t.testdir({}))).executor.turn?.conversationId))
  t.not(ids[0], ids[1])
  const workspace = t.testdir({ '.sandbox': { records: { approvals: { 'post-1': { '1-a.txt': 'a' }, other: {} } } } })
  const gone = async () => {
    throw new Refusal('not-found', 'no such conversation')
  }
  await endPosting({ place: { workspace }, call: gone } as never, 'post-1')
  t.same(readdirSync(join(workspace, '.sandbox/records/approvals')), ['other'])
})
