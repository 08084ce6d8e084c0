import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LandedMessages, messageIn, type LandedWork } from '../../../plugins/agents/landing/landed-messages.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { modelServer, type ScriptedReply } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'
import { memoryFiles } from './support.js'

const MESSAGE: ScriptedReply = { text: ['```json\n{"subject":"Greet the\\nworld"}\n```'] }

/** A sandbox with a model that writes messages. */
const world = async (t: Test, answer: ScriptedReply = MESSAGE, models = ['endpoint/quick:m']) => {
  const server = await modelServer(t, 'openai', [answer])
  const row = { id: 'm', label: 'M', efforts: [], badges: [] }
  const daemon = await daemonWith(t, ['agent', 'agents', 'git', 'settings'], {
    fakes: {
      'endpoints.choices': () => ({
        endpoints: [{ id: 'quick', label: 'Quick', models: [row], default: 'm', ready: true }],
      }),
      'endpoints.target': () => server.target(),
    },
  })
  await daemon.client.call('POST /settings', { quickModel: models })
  const land = async (id: string, prompt: string) => {
    await daemon.client.call('POST /agent', { conversationId: id, agent: 'script', title: id, isolated: true, prompt })
    await framesOf(daemon.client, id).all()
    t.match(await daemon.client.call('POST /agents/{id}/land', { id }), { landed: true })
  }
  const card = (id: string) => daemon.client.call('GET /agents/{id}', { id })
  return { ...daemon, server, land, card }
}

t.test('a landing has a message that a model drafted from its patch, on the card and beside the changes', async t => {
  const { client, land, card, server } = await world(t)
  await land('hi', 'write hello.txt\n| hello world')
  await until(async () => (await card('hi')).landedMessage !== undefined)
  t.match(await card('hi'), {
    placement: { kind: 'local' },
    landedMessage: { subject: 'Greet the world' },
    landedMessageDraft: {
      outcome: 'written',
      steps: exactly({ provider: 'endpoint/quick', model: 'm', status: 'answered' }),
    },
  })
  t.match(server.told(0), /hello\.txt/)
  t.match(server.told(0), /\+hello world/)
  const changes = await client.call('GET /git/changes', { repo: 'root' })
  t.match(changes, {
    repos: exactly({ origins: { 'hello.txt': exactly('hi') } }),
    originAgents: { hi: { provider: 'script', landedMessage: { subject: 'Greet the world' } } },
  })
})

t.test('where a changelog is kept, the message has a note for it and says what breaks', async t => {
  const answer = '{"subject":"Greet","note":" Greets\\nthe world. ","breaking":"Quiet mode is gone."}'
  const { client, land, card, server } = await world(t, { text: [answer] })
  await land('without', 'write a.txt\n| a')
  await until(async () => (await card('without')).landedMessage !== undefined)
  t.same((await card('without')).landedMessage, { subject: 'Greet' }, 'nobody asked for the rest')
  t.notMatch(server.told(0), 'changelog')
  await client.call('POST /settings/patch', { set: { changelogRepos: ['root'] } })
  await land('with', 'write b.txt\n| b')
  await until(async () => (await card('with')).landedMessage !== undefined)
  t.match(server.told(1), /one sentence for the changelog/)
  t.same((await card('with')).landedMessage, {
    ...{ subject: 'Greet', note: 'Greets the world.', breaking: 'Quiet mode is gone.' },
  })
  await client.call('POST /settings/patch', { set: { changelogRepos: ['libs/other'] } })
  await land('elsewhere', 'write c.txt\n| c')
  await until(async () => (await card('elsewhere')).landedMessage !== undefined)
  t.same((await card('elsewhere')).landedMessage, { subject: 'Greet' })
})

t.test('a model that refuses leaves the reason, and a landing without any model has no draft', async t => {
  const refused = await world(t, { status: 400, body: '{"error":"too busy"}' })
  await refused.land('no', 'write a.txt\n| a')
  await until(async () => (await refused.card('no')).landedMessageDraft?.outcome !== undefined)
  t.match(await refused.card('no'), {
    landedMessage: undefined,
    landedMessageDraft: { outcome: 'failed', reason: /too busy/, steps: exactly({ status: 'refused' }) },
  })
  const skipped = await world(t, MESSAGE, ['endpoint/gone:m'])
  await skipped.land('gone', 'write a.txt\n| a')
  await until(async () => (await skipped.card('gone')).landedMessageDraft?.outcome !== undefined)
  t.match(await skipped.card('gone'), { landedMessageDraft: { steps: exactly({ status: 'skipped' }) } })
  t.equal(skipped.server.requests.length, 0)
})

/** Messages of landings, by a model whose answers are given; without any, none can be used. */
const messagesOf = (
  files: ReturnType<typeof memoryFiles>,
  answers: readonly (() => Promise<string>)[],
  prompts: string[] = [],
) => {
  const left = [...answers]
  const call = async (name: string, { prompt = '' }: { prompt?: string } = {}) => {
    if (name === 'agent.complete') {
      prompts.push(prompt)
      return { text: await left.shift()!(), model: 'p:m' }
    }
    if (name === 'settings.get') return { draftLandedMessages: true, changelogRepos: [] }
    const rung = { provider: 'p', model: 'm', usable: true }
    return { role: 'commit-message', from: 'list', configured: [], resolved: left.length > 0 ? [rung] : [] }
  }
  const host = { call, serves: async () => true, log: { warn: t.fail }, signal: new AbortController().signal }
  return new LandedMessages({ host: host as never, files, now: () => 7, changed: () => {} })
}
const WORK: LandedWork = {
  ...{ conversation: 'c', provider: 'p', model: 'm', repos: ['root'], paths: ['a.txt'] },
  patch: async () => '',
}
const says = (subject: string) => async () => JSON.stringify({ subject })

t.test('the message is that of the newest landing: an earlier one goes when the next is drafted', async t => {
  const files = memoryFiles()
  const refuses = () => Promise.reject(new Error('too busy'))
  const messages = messagesOf(files, [says('First'), refuses, says('Third')])
  await messages.draft(WORK)
  t.match(messages.of('c'), { landedMessage: { subject: 'First' } })
  await messages.draft(WORK)
  t.match(messages.of('c'), { landedMessage: undefined, landedMessageDraft: { outcome: 'failed', reason: 'too busy' } })
  await messages.draft(WORK)
  t.match(messages.of('c'), { landedMessage: { subject: 'Third' } })
  await messages.draft(WORK)
  t.same(messages.of('c'), {}, 'no model could be asked')
  t.same(await files.list(''), [])
})

t.test('a draft that a kill cut off has failed after the restart', async t => {
  const files = memoryFiles()
  const asked = Promise.withResolvers<void>()
  void messagesOf(files, [() => (asked.resolve(), new Promise(() => {}))]).draft(WORK)
  await asked.promise
  const again = messagesOf(files, [])
  await again.open()
  const reason = 'the sandbox was restarted before a model had answered'
  t.match(again.of('c'), {
    landedMessageDraft: { outcome: 'failed', reason, finishedAt: 7, steps: exactly({ status: 'refused', reason }) },
  })
})

t.test('a note that cannot be read is left out, and the others are there', async t => {
  const files = memoryFiles()
  await messagesOf(files, [says('First')]).draft(WORK)
  await files.write('landed-messages/broken', {})
  const warned: object[] = []
  const host = { log: { warn: (_: string, fields: object) => warned.push(fields) } }
  const reads: typeof files.read = async name => {
    if (name.endsWith('broken')) throw new Error('the document is not JSON')
    return files.read(name)
  }
  const again = new LandedMessages({
    ...{ host: host as never, files: { ...files, read: reads }, now: () => 7, changed: () => {} },
  })
  await again.open()
  t.match(again.of('c'), { landedMessage: { subject: 'First' } })
  t.match(warned, exactly({ conversation: 'broken' }))
})

t.test('paths name who landed them until they are committed; then blame does', async t => {
  const { client, land, workspace } = await world(t)
  await land('one', 'write a.txt\n| one')
  await land('two', 'write b.txt\n| two')
  writeFileSync(join(workspace, 'mine.txt'), 'mine\n')
  // Every object of the language has something of this name.
  writeFileSync(join(workspace, 'constructor'), 'mine\n')
  const origins = async () => (await client.call('GET /git/changes', { repo: 'root' })).repos[0]?.origins
  t.same(await origins(), { 'a.txt': ['one'], 'b.txt': ['two'] })
  const blame = async (path: string) =>
    (await client.call('GET /git/{repo}/blame', { repo: 'root', path })).hunks.map(hunk => [
      hunk.sha !== undefined,
      hunk.conversationId,
    ])
  inGit(workspace, 'add', 'a.txt')
  t.same(await blame('a.txt'), [[false, 'one']])
  // Git counts whole seconds.
  await new Promise(resolve => setTimeout(resolve, 1_100))
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'both')
  t.same(await blame('a.txt'), [[true, 'one']])
  t.same(await blame('mine.txt'), [[true, undefined]])
  t.same(await blame('constructor'), [[true, undefined]])
  writeFileSync(join(workspace, 'a.txt'), 'one\nby hand\n')
  t.same(await origins(), undefined, 'what was committed is not what is changed now')
  await new Promise(resolve => setTimeout(resolve, 1_100))
  await land('three', 'edit b.txt\n| - two\n| + three')
  t.same(await origins(), { 'b.txt': ['three'] })
  await new Promise(resolve => setTimeout(resolve, 1_100))
  inGit(workspace, 'commit', '-qam', 'again')
  t.same(await blame('b.txt'), [[true, 'three']])
})

t.test('a blame is told without a record of landings that can be read', async t => {
  const { client } = await daemonWith(t, ['git', 'areas'], {
    files: { 'a.txt': 'a\n' },
    fakes: { 'agents.origins': () => Promise.reject(new Error('torn')) },
  })
  t.match(await client.call('GET /git/{repo}/blame', { repo: 'root', path: 'a.txt' }), { hunks: exactly({ count: 1 }) })
})

/** The models that are asked for a message, each of which refuses, where the settings name no quick model. */
const askedFor = async (work: LandedWork, drafts = true) => {
  const asked: string[] = []
  const rungs = ['other:cheap', 'own:cheap', 'own:big'].map(key => {
    const [provider, model] = key.split(':')
    return { provider, model, usable: true }
  })
  const call = async (name: string, { models }: { models?: string[] } = {}) => {
    if (name === 'settings.get') return { draftLandedMessages: drafts, changelogRepos: [] }
    if (name === 'agent.complete') {
      asked.push(...models!)
      throw new Error('too busy')
    }
    if (!models) return { from: 'auto', resolved: rungs }
    return { from: 'list', resolved: rungs.filter(({ provider, model }) => models.includes(`${provider}:${model}`)) }
  }
  const host = { call, serves: async () => true, log: { warn: t.fail }, signal: new AbortController().signal }
  await new LandedMessages({ host: host as never, files: memoryFiles(), now: () => 7, changed: () => {} }).draft(work)
  return asked
}

t.test('without quick models a patch goes to no other provider than the one that did the work', async t => {
  t.same(await askedFor({ ...WORK, provider: 'own', model: 'big' }), ['own:big', 'own:cheap'])
  t.same(await askedFor({ ...WORK, provider: 'own', model: undefined }), ['own:cheap', 'own:big'])
  t.same(await askedFor({ ...WORK, provider: 'own', model: 'gone' }), ['own:cheap', 'own:big'])
  t.same(await askedFor({ ...WORK, provider: 'script', model: undefined }), [])
})

t.test('no message is drafted where the settings switch that off', async t => {
  t.same(await askedFor({ ...WORK, provider: 'own', model: 'big' }, false), [])
})

t.test('a long patch is shown to the model up to the end of a line', async t => {
  const prompts: string[] = []
  const messages = messagesOf(memoryFiles(), [says('Long')], prompts)
  await messages.draft({ ...WORK, patch: async () => `${'x'.repeat(11_990)}\n+key=one-value-that-is-cut\n` })
  t.equal((/"patch":"([^"]*)"/.exec(prompts[0]!)?.[1] ?? '').length, 11_992)
  t.notMatch(prompts[0], 'key=')
})

t.test('a message is read out of what small models write', t => {
  t.same(messageIn('Sure: {"subject":"  Do it \\u202e "} done'), { subject: 'Do it' })
  t.same(
    ['', 'x', '{}', '{"subject":3}', '{"subject":" "}', '[1]'].map(text => messageIn(text)),
    Array(6).fill(undefined),
  )
  t.equal(messageIn(`{"subject":"${'x'.repeat(900)}"}`)?.subject.length, 200)
  t.end()
})
