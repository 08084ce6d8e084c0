import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type CallToolResult, Client, type ElicitRequest, type Progress } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t, { type Test } from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { project } from '../../../support/browser/page.js'
import { ALSO_UNWALLED } from '../../../support/walls.js'
import { PROGRAM } from '../cli-process.js'

t.setTimeout(300_000)

const root = folderOf(t)
const workspace = join(root, 'workspace')
makeWorkspace(workspace)
const daemon = await spawnDaemon(t, { workspace, data: join(root, 'data') })

type Answers = (asked: ElicitRequest['params']) => {
  action: 'accept' | 'decline'
  content?: { [name: string]: string }
}

/** The official client, and the built program that it started. */
const assistant = async (
  t: Test,
  {
    answers,
    shows = answers && { form: {} },
    args = [],
    env = {},
  }: {
    answers?: Answers
    shows?: { form?: {}; url?: {} } | undefined
    args?: string[]
    env?: { [name: string]: string }
  } = {},
) => {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: shows ? { elicitation: shows } : {} })
  if (answers) client.setRequestHandler('elicitation/create', ({ params }) => answers(params))
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [PROGRAM, 'mcp', '--data', daemon.data, ...args],
    env: { ...(process.env as { [name: string]: string }), ...ALSO_UNWALLED, ...env },
    stderr: 'ignore',
  })
  await client.connect(transport)
  t.teardown(() => client.close())
  const raw = (name: string, args: { [name: string]: unknown } = {}, onprogress?: (progress: Progress) => void) =>
    client.callTool({ name, arguments: args }, { timeout: 120_000, ...(onprogress && { onprogress }) })
  const text = ({ content }: CallToolResult) => (content[0]?.type === 'text' ? content[0].text : '')
  return {
    client,
    /** The answer of a tool that has to succeed. */
    call: async <T>(...asked: Parameters<typeof raw>): Promise<T> => {
      const result = await raw(...asked)
      if (result.isError) throw new Error(text(result))
      return JSON.parse(text(result)) as T
    },
    /** The sentence of a tool that has to fail. */
    refused: async (...asked: Parameters<typeof raw>): Promise<string> => {
      const result = await raw(...asked)
      return result.isError ? text(result) : `it answered ${text(result)}`
    },
  }
}

interface Waited {
  readonly state: string
  readonly end?: string
  readonly said: string
  readonly cards: { readonly card: string; readonly kind: string; readonly asks: string }[]
}
interface Diff {
  readonly files: { readonly path: string; readonly landed: boolean }[]
  readonly expect: { readonly [repo: string]: string }
}

const token = async (scope: 'read' | 'drive' | 'land'): Promise<{ SANDBOX_TOKEN: string }> => {
  const minted = await daemon.client.call('POST /system/control/tokens', { label: `mcp-${scope}`, scope })
  return { SANDBOX_TOKEN: minted.token }
}

t.test('an assistant starts a turn, answers, reads and comments the diff, and lands what it saw', async t => {
  const { client, call, refused } = await assistant(t, { env: await token('land') })
  const prompt = 'write a.txt\n| one\nask Which colour?\n| red: warm\n| blue: cold\nsay it is $answer'
  const { conversationId: conversation } = await call<{ conversationId: string }>('run', { prompt })
  const steps: string[] = []
  const waits = await call<Waited>('wait', { conversation }, ({ message }) => void (message && steps.push(message)))
  t.match(waits, { state: 'waits', cards: exactly({ kind: 'question', asks: /Which colour/ }) })
  t.match(steps.join(), /Write a\.txt/, 'progress names the calls')
  const { cards } = await call<{ cards: { card: string }[] }>('cards', { conversation })
  t.match(await refused('answer', { conversation, card: 'r-none', answer: ['1'] }), /no card r-none waits/)
  await call('answer', { conversation, card: cards[0]!.card, answer: ['2'] })
  t.match(await call('wait', { conversation }), { state: 'ended', end: 'completed', said: /it is blue/ })

  const first = await call<{ frames: object[]; after: number; more: boolean }>('frames', { conversation, limit: 2 })
  t.match(first, { more: true, after: 2 })
  const rest = await call<{ frames: { kind: string }[] }>('frames', { conversation, after: first.after, limit: 500 })
  t.equal(rest.frames.at(-1)?.kind, 'done')
  t.match(await call('frames', { conversation, after: 100_000 }), { frames: exactly(), more: false })

  const seen = await call<Diff>('diff', { conversation })
  t.match(seen.files, exactly({ path: 'a.txt', landed: false }))
  t.match(await call('diff', { conversation, path: 'a.txt' }), { lines: /\+one/ })
  await call('comment', { conversation, path: 'a.txt', line: 1, comment: 'say more' })
  await call('wait', { conversation })
  t.match(
    (await daemon.client.call('GET /agents/{id}/transcript', { id: conversation })).messages.findLast(
      ({ role }) => role === 'user',
    ),
    { text: 'About a.txt, line 1:\n\nsay more' },
  )
  await call('run', { conversation, prompt: 'write a.txt\n| two' })
  await call('wait', { conversation })
  t.match(
    await refused('land', { conversation, expect: seen.expect }),
    /work|changed|shown/,
    'only what was seen lands',
  )
  t.match(await refused('land', { conversation }), /expect: expected the tips/)
  const { expect } = await call<Diff>('diff', { conversation })
  t.match(await call('land', { conversation, expect }), { landed: true })
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'two\n')

  const { resources } = await client.listResources()
  const uri = `sandbox://conversation/${conversation}`
  t.ok(resources.some(one => one.uri === uri))
  t.match((await client.readResource({ uri })).contents[0], { text: /it is blue/ })
  for (const wrong of ['sandbox://conversation/../x', 'sandbox://conversation/c-none', 'file:///etc/passwd'])
    await t.rejects(client.readResource({ uri: wrong }), { message: /expected sandbox:|no (?:such )?conversation/ })
  await call('discard', { conversation, expect: (await call<Diff>('diff', { conversation })).expect })
  t.notOk((await call<{ conversations: { id: string }[] }>('conversations')).conversations.length)
})

t.test('where the assistant has forms, cards are elicitations', async t => {
  const asked: ElicitRequest['params'][] = []
  const { call } = await assistant(t, {
    answers: params => {
      asked.push(params)
      const content: { [name: string]: string } = asked.length === 1 ? { q1: 'blue' } : { answer: 'yes' }
      return { action: 'accept', content }
    },
  })
  const prompt = 'ask Which colour?\n| red: warm\n| blue: cold\nsay it is $answer\nplan Paint it\nsay painted'
  const { conversationId: conversation } = await call<{ conversationId: string }>('run', { prompt })
  const waited = await call<Waited>('wait', { conversation })
  t.match(waited, { state: 'ended', end: 'completed', said: /it is blue[^]*painted/ })
  t.match(
    asked.map(({ message }) => message),
    exactly(/Which colour/, /Paint it/),
  )
})

t.test(
  'what costs money or connects something is answered by a person, and all but questions where one is asked',
  async t => {
    const model = await assistant(t)
    const refusedOffers = async (prompt: string): Promise<string> => {
      const { conversationId: conversation } = await model.call<{ conversationId: string }>('run', { prompt })
      const { cards } = await model.call<Waited>('wait', { conversation })
      return model.refused('answer', { conversation, card: cards[0]!.card, answer: ['yes'] })
    }
    for (const offer of ['offer payment https://pay.example/x 1', 'offer service x 1', 'offer capability x'])
      t.match(await refusedOffers(offer), /expected a person to answer a \w+_offer, in the console/)

    const withForms = await assistant(t, { answers: () => ({ action: 'accept', content: {} }) })
    const asks = 'permit Deploy: may I?\nsay it was $answer'
    const { conversationId: conversation } = await model.call<{ conversationId: string }>('run', { prompt: asks })
    const { cards } = await model.call<Waited>('wait', { conversation })
    const answer = { conversation, card: cards[0]!.card, answer: ['once'] }
    t.match(await withForms.refused('answer', answer), /expected a person to answer a permission, whom wait asks/)
    await model.call('answer', answer)
    t.match(await withForms.call('wait', { conversation }), { state: 'ended', said: /it was once/ })
  },
)

t.test('a wait goes on to a message that waited, and says what both turns said', async t => {
  const { call } = await assistant(t, { answers: () => ({ action: 'accept', content: { answer: 'once' } }) })
  const prompt = 'permit Deploy: may I?\nsay the first'
  const { conversationId: conversation } = await call<{ conversationId: string }>('run', { prompt })
  while ((await call<{ cards: object[] }>('cards', { conversation })).cards.length === 0) await delay(20)
  await call('run', { conversation, prompt: 'say the second' })
  t.match(await call('wait', { conversation }), { state: 'ended', end: 'completed', said: /the first[^]*the second/ })
})

t.test('an assistant that shows only pages of the web is asked no forms', async t => {
  const { call } = await assistant(t, { shows: { url: {} } })
  const { conversationId: conversation } = await call<{ conversationId: string }>('run', { prompt: 'ask Why?' })
  t.match(await call('wait', { conversation }), { state: 'waits', cards: exactly({ kind: 'question' }) })
})

t.test('a token does what its scope reaches, and everything else is refused in a sentence', async t => {
  const reads = await assistant(t, { env: await token('read') })
  t.match(await reads.refused('run', { prompt: 'say x' }), /read|scope/)
  const drives = await assistant(t, { env: await token('drive') })
  const { conversationId: conversation } = await drives.call<{ conversationId: string }>('run', {
    prompt: 'write b.txt\n| one',
  })
  t.match(await drives.call('wait', { conversation }), { state: 'ended' })
  const { expect } = await reads.call<Diff>('diff', { conversation })
  t.match(await drives.refused('land', { conversation, expect }), /land|scope/)
  t.match(await drives.refused('discard', { conversation, expect }), /land|scope/)

  const wrong: [string, { [name: string]: unknown }, RegExp][] = [
    ['run', {}, /prompt: expected a text, found nothing/],
    ['run', { prompt: 7 }, /prompt: expected a text, found number/],
    ['run', { prompt: 'say x', mode: 'wild' }, /mode: expected one of/],
    ['run', { prompt: 'say x', conversation: '../x' }, /conversationId|pattern|expected/],
    ['wait', { conversation, seconds: -1 }, /seconds: expected a whole number from 0 to 600/],
    ['wait', { conversation: 'c-none' }, /no (?:such )?conversation/],
    ['answer', { conversation, card: 'x', answer: [1] }, /answer: expected one to 20 texts/],
    ['frames', { conversation, limit: 1e9 }, /limit: expected/],
    ['comment', { conversation: 'c-none', path: 'a', comment: 'x' }, /no (?:such )?conversation/],
  ]
  for (const [name, args, sentence] of wrong) t.match(await drives.refused(name, args), sentence, `${name} ${sentence}`)
  await t.rejects(drives.client.callTool({ name: 'constructor' }), { message: /no tool constructor/ })

  writeFileSync(join(root, 'token'), 'sbc_unknown')
  const stranger = await assistant(t, { args: ['--token-file', join(root, 'token')] })
  t.match(await stranger.refused('conversations'), /token|credential/)
})

t.test('the guide shows how it is started, and its tools', async t => {
  const guide = readFileSync(join(project, 'plugins/agent/README.md'), 'utf8')
  const [, json = ''] = /```json\n(\{ "mcpServers"[^`]*)```/.exec(guide) ?? []
  const { mcpServers } = JSON.parse(json) as { mcpServers: { [name: string]: { command: string; args: string[] } } }
  t.strictSame(mcpServers, { sandbox: { command: 'sandbox', args: ['mcp'] } })
  const { client } = await assistant(t)
  const { tools } = await client.listTools()
  t.strictSame(tools.map(({ name }) => name).sort(), [
    'answer',
    'cards',
    'comment',
    'conversations',
    'diff',
    'discard',
    'frames',
    'land',
    'run',
    'stop',
    'wait',
  ])
  t.ok(
    tools.every(
      ({ inputSchema: { type, required = [], properties = {} } }) =>
        type === 'object' && required.every(name => name in properties),
    ),
  )
  t.ok(JSON.stringify(tools).length < 8000, 'their descriptions are short')
})

t.test('the assistant goes in the middle of a wait, and the turn goes on', async t => {
  const { client, call } = await assistant(t)
  const prompt = 'say before\nwait words\nsay heard $words'
  const { conversationId: conversation } = await call<{ conversationId: string }>('run', { prompt })
  t.match(await call('wait', { conversation, seconds: 0 }), { state: 'running' })
  const left = client.callTool({ name: 'wait', arguments: { conversation } }).catch(() => undefined)
  await client.close()
  await left
  await daemon.client.call('POST /agent', { conversationId: conversation, prompt: 'you' })
  const other = await assistant(t)
  t.match(await other.call('wait', { conversation }), { state: 'ended', said: /heard you/ })
})

t.test('a conversation that an assistant names itself works in a private copy too', async t => {
  const { call } = await assistant(t, { env: await token('land') })
  await call('run', { conversation: 'my-own', prompt: 'write own.txt\n| own' })
  t.match(await call('wait', { conversation: 'my-own' }), { state: 'ended' })
  t.notOk(existsSync(join(workspace, 'own.txt')))
  t.match((await call<Diff>('diff', { conversation: 'my-own' })).files, exactly({ path: 'own.txt', landed: false }))
  await call('run', { conversation: 'my-own', prompt: 'say on' })
  t.match(await call('wait', { conversation: 'my-own' }), { state: 'ended', said: /on/ })
})
