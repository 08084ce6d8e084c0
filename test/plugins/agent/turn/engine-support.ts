import type { Test } from 'tap'
import type { ProviderAdapter, TurnIo, TurnRequest } from '../../../../plugins/agent/providers/adapter.js'
import { Anchors } from '../../../../plugins/agent/conversations/anchors.js'
import { OpenCards } from '../../../../plugins/agent/cards/cards.js'
import type { Frame, SwitchInput, TurnInput } from '../../../../plugins/agent/contract.js'
import { Conversations } from '../../../../plugins/agent/conversations/conversations.js'
import { MessageDelivery } from '../../../../plugins/agent/queue/delivery.js'
import { Engine } from '../../../../plugins/agent/turn/engine.js'
import { Forks } from '../../../../plugins/agent/conversations/forks.js'
import { framesOf } from '../../../../plugins/agent/turn/frames/frame-log.js'
import { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'
import type { OutageTimes } from '../../../../plugins/agent/turn/recovery/outage.js'
import { PlannedResumes } from '../../../../plugins/agent/turn/recovery/planned-resumes.js'
import { Providers } from '../../../../plugins/agent/providers/providers.js'
import { Queue } from '../../../../plugins/agent/queue/queue.js'
import { switchAccount } from '../../../../plugins/agent/turn/switch-account.js'
import { Transcripts } from '../../../../plugins/agent/conversations/transcripts.js'
import type { ToolContext } from '../../../../plugins/agent/tools/tool.js'
import { tools } from '../../../../plugins/agent/tools/tools.js'
import type { Toolbox } from '../../../../plugins/agent/tools/toolbox.js'
import type { TurnEnvironment } from '../../../../plugins/agent/turn/environment/environment.js'
import { turnIo } from '../../../../plugins/agent/turn/io.js'
import type { Caller } from '../../../../sdk/index.js'
import { accessViewWith } from '../../../../sdk/node/access/access-view.js'
import { journalsIn, memoryStore } from '../../../support/journals.js'

const CALLER: Caller = { kind: 'session', actor: 'ada@example.org', role: 'owner' }
const nothing = async () => {}

const NO_TOOLS: Toolbox = {
  face: () => ({ refused: 'no tools here' }),
  run: () => Promise.reject(new Error('no tools')),
  stamp: async () => undefined,
  offered: async () => [],
  walled: () => Promise.reject(new Error('no programs')),
  shared: async () => undefined,
}
/** The tools that raise cards. */
export const asking: Toolbox = {
  ...NO_TOOLS,
  face: (name, input) => ({ category: 'think', ...tools[name]!.describe(tools[name]!.check(input)) }),
  run: (name, input, signal, callContext) =>
    tools[name]!.run(tools[name]!.check(input), { signal, ...callContext } as ToolContext),
}

/** An engine without tools or trees, on an adapter made of one function. */
export const engineOn = (
  t: Test,
  run: (request: TurnRequest, io: TurnIo) => AsyncIterable<Frame>,
  {
    words = true,
    patienceMs = 200,
    holdMs = 30_000,
    journal = journalsIn(t),
    toolbox = NO_TOOLS,
    state = true,
    others = [] as ProviderAdapter[],
    outages = undefined as OutageTimes | undefined,
    prepare = (async () => ({
      root: '/',
      cwd: '/',
      preamble: '',
      attachments: [],
      mentions: [],
    })) as TurnEnvironment['prepare'],
  } = {},
) => {
  const adapter: ProviderAdapter = {
    id: 'test',
    label: 'Test',
    harnesses: ['native'],
    ownHarness: 'native',
    models: ['one'],
    commands: [],
    run,
    abilities: () => ({
      words,
      permissions: 'modes',
      questions: true,
      commands: false,
      terminals: false,
      state,
      offline: true,
      fast: true,
    }),
  }
  const logged: string[] = []
  const over = new AbortController()
  t.teardown(() => over.abort())
  const say = (message: string) => void logged.push(message)
  const log = { info: () => {}, warn: say, error: say }
  const conversations = new Conversations(memoryStore(), log)
  const queue = new Queue(journal, () => conversations.stored())
  const providers = new Providers(memoryStore(), log, [adapter, ...others])
  const [decisions, locks, cards] = [new KeyedMutex(), new KeyedMutex(), new OpenCards()]
  const environment: TurnEnvironment = {
    prepare,
    refresh: nothing,
    settle: nothing,
    io: (turn, prepared, adapterRun) =>
      turnIo(turn, prepared, adapterRun, {
        remembered: { names: () => new Set(), add: () => {} },
        toolbox,
        subagentDeps: { providers, log },
        expose: () => Promise.reject(new Error('no programs here')),
      }),
  }
  const emitted: string[] = []
  const host = {
    journal,
    log,
    cards,
    changed: () => {},
    helped: () => {},
    emit: (event: string) => void emitted.push(event),
    signal: over.signal,
  }
  const resumes =
    outages
    && new PlannedResumes(
      {
        engine: () => engine,
        conversations,
        queue,
        decisions,
        log,
        changed: () => {},
        setting: async () => true,
        signal: host.signal,
      },
      outages,
    )
  const engine: Engine = new Engine({
    host,
    conversations,
    queue,
    transcripts: new Transcripts(journal),
    providers,
    environment,
    decisions,
    locks,
    patienceMs,
    holdMs,
    ...(resumes && { resumes }),
  })
  const checks = {
    landing: nothing,
    masking: nothing,
    attachments: nothing,
    mentions: async () => [],
    startIn: nothing,
    isolation: async () => [],
  }
  const none = { repositories: async () => [], resolve: async () => [] }
  const forks = new Forks({
    conversations,
    transcripts: new Transcripts(journal),
    anchors: new Anchors(journal),
    copies: none,
    journal,
    log,
    copied: async () => {},
  })
  const delivery = new MessageDelivery({
    engine,
    conversations,
    queue,
    providers,
    decisions,
    checks,
    forks,
    transcripts: new Transcripts(journal),
    look: async () => accessViewWith('/nowhere', undefined),
  })
  const send = (input: Partial<TurnInput>) =>
    delivery.deliver({ conversationId: 'c', prompt: 'go', ...input } as TurnInput, { caller: CALLER })
  const frames = async (run: string) => (await journal.read<{ event: Frame }>(framesOf(run))).map(({ event }) => event)
  const move = (input: Omit<SwitchInput, 'conversationId'>) =>
    switchAccount({ engine, conversations, providers, decisions }, { conversationId: 'c', ...input })
  return { engine, conversations, queue, cards, resumes, send, move, frames, logged, emitted, journal }
}
