import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import ts from 'typescript'
import type { Card, CardReply, Frame } from '../../../../plugins/agent/contract.js'
import type { Client } from '../../../../sdk/client.js'
import { daemonWith, folderOf, makeWorkspace, root, spawnDaemon, type Support } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { framesOf } from '../../../support/turns.js'

/** Every kind of frame in the type. */
const declaredKinds = (): string[] => {
  const file = join(root, '..', 'plugins/agent/turn/frames/frames.ts')
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    skipLibCheck: true,
  })
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(file)!
  const frame = checker.getExportsOfModule(checker.getSymbolAtLocation(source)!).find(({ name }) => name === 'Frame')!
  const union = checker.getDeclaredTypeOfSymbol(frame)
  if (!union.isUnion()) throw new Error('expected Frame to be a union')
  return union.types
    .map(member => {
      const kind = checker.getTypeOfSymbol(member.getProperty('kind')!)
      if (!kind.isStringLiteral()) throw new Error(`expected one literal kind, found ${checker.typeToString(kind)}`)
      return kind.value
    })
    .sort()
}

const yesTo = (card: Card): CardReply => {
  const { requestId } = card
  switch (card.kind) {
    case 'question':
      return { kind: 'question', requestId, answers: { [card.questions[0]!.question]: 'yes' } }
    case 'permission':
      return { kind: 'permission', requestId, decision: 'once' }
    case 'capability_offer':
      return { kind: 'capability_offer', requestId, connect: true }
    case 'browser_help':
    case 'terminal_help':
      return { kind: card.kind, requestId, helped: true }
    default:
      return { kind: card.kind, requestId, approve: true }
  }
}

const CARDS: { readonly [kind in Card['kind']]: true } = {
  plan: true,
  question: true,
  permission: true,
  browser_help: true,
  terminal_help: true,
  service_offer: true,
  capability_offer: true,
  payment_offer: true,
}
const isCard = (frame: Frame): frame is Card => Object.hasOwn(CARDS, frame.kind)

/** The daemon and the conversation of a scene. */
interface Stage {
  readonly t: Test
  readonly folder: string
  readonly daemon: Support
  /** The conversation of the scene. */
  readonly id: string
}
type Scene = (stage: Stage) => Promise<Frame[]>

/** Runs one turn to its end, and approves every card with the call of a person's client. */
const played = async (client: Client, id: string, prompt: string, options: object = {}): Promise<Frame[]> => {
  const { run } = await client.call('POST /agent', { conversationId: id, prompt, ...options })
  const watched = framesOf(client, id, { run })
  for (;;) {
    const frame = (await watched.until(frame => isCard(frame) || frame.kind === 'done')) as Frame
    if (!isCard(frame)) return watched.seen.map(({ event }) => event)
    await client.call('POST /agent/reply', yesTo(frame))
  }
}

const script =
  (prompt: string, options?: object): Scene =>
  ({ daemon, id }) =>
    played(daemon.client, id, prompt, options)

/** A turn that waits for a message, and an action meanwhile. */
const meanwhile =
  (happens: (client: Client, id: string) => Promise<unknown>): Scene =>
  async ({ daemon: { client }, id }) => {
    await client.call('POST /agent', { conversationId: id, prompt: 'wait words' })
    const watched = framesOf(client, id)
    await watched.until(({ kind }) => kind === 'commands')
    await happens(client, id)
    return (await watched.all()).map(({ event }) => event)
  }

const restarted: Scene = async ({ t, folder, id }) => {
  const where = { workspace: join(folder, 'killed'), data: join(folder, 'killed-data') }
  makeWorkspace(where.workspace)
  mkdirSync(join(where.workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(join(where.workspace, '.sandbox', 'config', 'settings.json'), '{ "autoResumeOnRestart": true }')
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', { conversationId: id, prompt: 'say before\nwait 1000' })
  await framesOf(daemon.once, id).until(({ kind }) => kind === 'text_end')
  await daemon.kill9()
  const next = await spawnDaemon(t, where)
  return (await framesOf(next.client, id, { run }).all()).map(({ event }) => event)
}

/** A turn at whose end a rule of the settings says something. */
const ruled: Scene = async ({ daemon: { client }, id }) => {
  const rule = {
    id: 'more',
    label: 'More',
    moment: 'turn.ending',
    action: { kind: 'instruct', text: 'say more' },
  } as const
  await client.call('POST /settings/patch', { set: { rules: [rule] } })
  const frames = await played(client, id, 'say hi')
  await client.call('POST /settings/patch', { unset: ['rules'] })
  return frames
}

/** A turn that a model judges easy. */
const judged: Scene = async ({ t, daemon: { client }, id }) => {
  const server = await modelServer(t, 'openai', ({ path }) =>
    path.endsWith('/models') ? { status: 200, body: '{"data":[{"id":"m"}]}' } : { text: ['{"score":0}'] },
  )
  await client.call('POST /endpoints', { id: 'judge', kind: 'server', protocol: 'openai', baseUrl: server.address })
  await client.call('GET /endpoints/{id}/models', { id: 'judge' })
  const models = { autoFastModels: ['script:script-fast'], quickModel: ['endpoint/judge:m'] }
  await client.call('POST /settings/patch', { set: { autoTier: 'on', ...models } })
  const frames = await played(client, id, 'say hi', { agent: 'script', model: 'script' })
  await client.call('POST /settings/patch', { unset: ['autoTier', 'autoFastModels', 'quickModel'] })
  await client.call('DELETE /endpoints/{id}', { id: 'judge' })
  return frames
}

/** One script per kind; a new kind needs a line here. */
const SCENES: { readonly [kind: string]: Scene } = {
  session: script('say hi'),
  worktree: script('say hi', { isolated: true }),
  checkpoint: script('say hi', { isolated: true }),
  preamble: script('say hi', { mentions: ['README.md'] }),
  init: script('say hi'),
  tier: judged,
  commands: script('say hi'),
  switched: meanwhile(async (client, conversationId) => {
    await client.call('POST /agent/switch-account', { conversationId, model: 'script-fast' })
    await client.call('POST /agent/steer', { conversationId, text: 'go' })
  }),
  resumed: restarted,
  mode: script('mode acceptEdits'),
  steer: meanwhile((client, conversationId) => client.call('POST /agent/steer', { conversationId, text: 'go' })),
  delta: script('say one two'),
  text_end: script('say one two'),
  thinking: script('think hm'),
  tool_call: script('read README.md'),
  tool_call_update: script('code\n| console.log(6 * 7)\nexpect 42'),
  todos: script('todo [ ] a | [~] b | [x] c'),
  subagent: script('helper look\n| say hi'),
  subagent_update: script('helper look\n| say hi'),
  usage: script('usage 10 20 0.5'),
  rate_limit_info: script('limit 85 60000'),
  account_usage: script('limit 100'),
  fast_mode: script('fast cooldown'),
  provider_retry: script('retry 2 1'),
  context_usage: script('context 1000 200000'),
  compact: script('context 1000 200000\ncompact'),
  plan: script('plan Do it'),
  question: script('ask Go on?\n| yes: y\nsay $answer'),
  permission: script('permit Shell: may I'),
  browser: script('browse about:blank'),
  browser_help: script('browse about:blank\nhandover browser look'),
  terminal: script('handover terminal look'),
  terminal_help: script('handover terminal look'),
  service_offer: script('offer service translate 3'),
  service_event: script('offer service translate 3'),
  service_receipt: script('offer service translate 3'),
  capability_offer: script('offer capability forge'),
  capability_outcome: script('offer capability forge'),
  payment_offer: script('offer payment https://shop.example/a 1.50'),
  payment_receipt: script('offer payment https://shop.example/a 1.50'),
  resolved: script('ask Go on?'),
  queue: meanwhile(async (client, conversationId) => {
    await client.call('POST /agent', { conversationId, prompt: 'say later', errand: 'ci-fix' })
    await client.call('POST /agent/steer', { conversationId, text: 'go' })
  }),
  notice: script('say hi', { actsAs: 'nobody' }),
  error: script('fail on purpose'),
  landed: script('write a.txt\n| x', { isolated: true, autoLand: true }),
  rule: ruled,
  need: script('need information Which region?'),
  approval: script('propose webhook https://example.org\n| News'),
  done: script('stop'),
}

t.test('every kind of frame has a script that produces it, and every script a kind', async t => {
  const declared = declaredKinds()
  t.ok(declared.length > 30 && declared.includes('service_offer'), 'the kinds were read from the type')
  t.same(Object.keys(SCENES).sort(), declared, 'one script per kind')
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const daemon = await daemonWith(t, [], where)
  const seen = new Set<string>()
  for (const [kind, scene] of Object.entries(SCENES)) {
    const frames = await scene({ t, folder, daemon, id: kind.replaceAll('_', '-') })
    t.ok(
      frames.some(frame => frame.kind === kind),
      `${kind}, among ${frames.map(frame => frame.kind).join(' ')}`,
    )
    for (const frame of frames) seen.add(frame.kind)
    const cards = frames.filter(isCard).map(({ requestId }) => requestId)
    t.same(
      frames.flatMap(frame => (frame.kind === 'resolved' ? [frame.requestId] : [])),
      cards,
      'every card is resolved once',
    )
    t.equal(frames.at(-1)?.kind, 'done', 'the last frame')
  }
  t.same([...seen].sort(), declared)
})

const find = <K extends Frame['kind']>(frames: readonly Frame[], kind: K) =>
  frames.filter((frame): frame is Extract<Frame, { kind: K }> => frame.kind === kind)

t.test('frames have the values of their command', async t => {
  const { client } = await daemonWith(t, ['agent', 'agents'])
  const frames = await played(
    client,
    'c-1',
    'context 900 1000\ncompact\nlimit 85 60000\nlimit 100\nlimit 0\nfast on\nfast off\nretry 2 5\nusage 7 8 0.25',
  )
  t.match(find(frames, 'context_usage'), exactly({ tokens: 900, contextWindow: 1000 }))
  t.match(find(frames, 'compact'), exactly({ preTokens: 900 }))
  t.match(
    find(frames, 'rate_limit_info'),
    exactly({ status: 'allowed_warning', utilization: 85 }, { status: 'rejected' }, { status: 'allowed' }),
  )
  const [first, second] = find(frames, 'account_usage').map(({ windows }) => windows[0]!)
  t.equal(first!.resetsAt, first!.measuredAt + 60_000)
  t.equal(second!.resetsAt, undefined)
  t.match(find(frames, 'fast_mode'), exactly({ state: 'on' }, { state: 'off' }))
  t.match(find(frames, 'provider_retry'), exactly({ attempt: 1, maxAttempts: 2 }, { attempt: 2, maxAttempts: 2 }))
  t.match(find(frames, 'usage'), exactly({ inputTokens: 7, outputTokens: 8, costUsd: 0.25 }))
  t.match(await client.call('GET /agents/{id}', { id: 'c-1' }), { contextTokens: 900, contextWindow: 1000 })
})
