import type { Test } from 'tap'
import type { ProviderAdapter, TurnIo, TurnRequest } from '../../plugins/agent/adapter.js'
import { Anchors } from '../../plugins/agent/anchors.js'
import { Cards } from '../../plugins/agent/cards.js'
import type { Frame, SwitchInput, TurnInput } from '../../plugins/agent/contract.js'
import { Conversations } from '../../plugins/agent/conversations.js'
import { Delivery } from '../../plugins/agent/delivery.js'
import { Engine } from '../../plugins/agent/engine.js'
import { Forks } from '../../plugins/agent/forks.js'
import { framesOf } from '../../plugins/agent/frame-log.js'
import { Lanes } from '../../plugins/agent/lanes.js'
import type { OutageTimes } from '../../plugins/agent/outage.js'
import { PlannedResumes } from '../../plugins/agent/planned-resumes.js'
import { Providers } from '../../plugins/agent/providers.js'
import { Queue } from '../../plugins/agent/queue.js'
import { switchAccount } from '../../plugins/agent/switch-account.js'
import { Transcripts } from '../../plugins/agent/transcripts.js'
import type { ToolContext } from '../../plugins/agent/tools/tool.js'
import { tools } from '../../plugins/agent/tools/tools.js'
import { turnIo, type Toolbox, type Workshop } from '../../plugins/agent/turn-io.js'
import type { Caller } from '../../sdk/index.js'
import { sightWith } from '../../sdk/node/sight.js'
import { journalsIn, memoryStore } from '../support/journals.js'

const CALLER: Caller = { kind: 'session', actor: 'ada@example.org', role: 'owner' }
const nothing = async () => {}

const NO_TOOLS: Toolbox = {
  face: () => ({ refused: 'no tools here' }), run: () => Promise.reject(new Error('no tools')), stamp: async () => undefined,
  walled: () => Promise.reject(new Error('no programs')),
}
/** The tools that put cards to people. */
export const asking: Toolbox = {
  ...NO_TOOLS,
  face: (name, input) => ({ category: 'think', ...tools[name]!.describe(tools[name]!.check(input)) }),
  run: (name, input, signal, company) => tools[name]!.run(tools[name]!.check(input), { signal, ...company } as ToolContext),
}

/** An engine without tools or trees, on an adapter made of one function. */
export const engineOn = (t: Test, run: (request: TurnRequest, io: TurnIo) => AsyncIterable<Frame>, {
  words = true, patienceMs = 200, holdMs = 30_000, journal = journalsIn(t), toolbox = NO_TOOLS, state = true, others = [] as ProviderAdapter[], outages = undefined as OutageTimes | undefined,
} = {}) => {
  const adapter: ProviderAdapter = {
    id: 'test', label: 'Test', harnesses: ['native'], ownHarness: 'native', models: ['one'], commands: [], run,
    abilities: () => ({ words, permissions: 'modes', questions: true, commands: false, terminals: false, state, offline: true }),
  }
  const logged: string[] = []
  const over = new AbortController()
  t.teardown(() => over.abort())
  const say = (message: string) => void logged.push(message)
  const log = { info: () => {}, warn: say, error: say }
  const conversations = new Conversations(memoryStore(), log)
  const queue = new Queue(journal, () => conversations.stored())
  const providers = new Providers(memoryStore(), log, [adapter, ...others])
  const [lanes, locks, cards] = [new Lanes(), new Lanes(), new Cards()]
  const workshop: Workshop = {
    prepare: async () => ({ root: '/', cwd: '/', preamble: '', attachments: [], mentions: [] }),
    refresh: nothing,
    settle: nothing,
    io: (turn, ground, leg) => turnIo(turn, ground, leg, {
      remembered: { names: () => new Set(), add: () => {} },
      toolbox, staff: { providers, log },
    }),
  }
  const emitted: string[] = []
  const host = { journal, log, cards, changed: () => {}, helped: () => {}, emit: (event: string) => void emitted.push(event), signal: over.signal }
  const resumes = outages && new PlannedResumes({
    engine: () => engine, conversations, queue, lanes, log, changed: () => {}, setting: async () => true, signal: host.signal,
  }, outages)
  const engine: Engine = new Engine({
    host, conversations, queue, transcripts: new Transcripts(journal), providers, workshop, lanes, locks, patienceMs, holdMs, ...(resumes && { resumes }),
  })
  const premises = { landing: nothing, masking: nothing, attachments: nothing, mentions: async () => [], startIn: nothing, isolation: async () => [] }
  const none = { repositories: async () => [] }
  const forks = new Forks({ conversations, transcripts: new Transcripts(journal), anchors: new Anchors(journal), copies: none, journal, log })
  const delivery = new Delivery({ engine, conversations, queue, providers, lanes, premises, forks, transcripts: new Transcripts(journal), look: async () => sightWith('/nowhere', undefined) })
  const send = (input: Partial<TurnInput>) => delivery.deliver({ conversationId: 'c', prompt: 'go', ...input } as TurnInput, { caller: CALLER })
  const frames = async (run: string) => (await journal.read<{ event: Frame }>(framesOf(run))).map(({ event }) => event)
  const move = (input: Omit<SwitchInput, 'conversationId'>) => switchAccount({ engine, conversations, providers, lanes }, { conversationId: 'c', ...input })
  return { engine, conversations, queue, cards, resumes, send, move, frames, logged, emitted, journal }
}
