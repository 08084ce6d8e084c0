import { join } from 'node:path'
import type { Caller, Contract, Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { askReach, accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { ControlGroups } from '../../sdk/node/limits/cgroup.js'
import { Limiter } from '../../sdk/node/limits/limiter.js'
import { wallLimits } from '../../sdk/node/limits/settings.js'
import { conversationHome } from '../../sdk/node/wall/home.js'
import { endLeftWalls } from '../../sdk/node/wall/left.js'
import { ConversationArchive } from './board/archive.js'
import { Board } from './board/board.js'
import { boardCalls } from './board/calls.js'
import { cardCalls } from './cards/calls.js'
import { OpenCards } from './cards/cards.js'
import { agent, type Conversation, type Agent } from './contract.js'
import { examples } from './examples.js'
import type { ViewOf } from './conversations/access-view.js'
import { Remembered } from './conversations/allowed-tools.js'
import { Anchors } from './conversations/anchors.js'
import { AutoLand } from './conversations/auto-land.js'
import { exportConversations, importConversations } from './conversations/bundle-part.js'
import { conversationCalls } from './conversations/calls.js'
import { Changes } from './conversations/changes.js'
import { ServerTools } from './connected-tools/connected-tools.js'
import { Conversations } from './conversations/conversations.js'
import { Eraser } from './conversations/eraser.js'
import { Forks } from './conversations/forks.js'
import { recorded } from './conversations/recorded.js'
import { RecordFiles } from './conversations/record-files.js'
import { SearchIndex } from './conversations/search-index.js'
import { Search } from './conversations/search.js'
import { nameConversations } from './conversations/titles.js'
import { Transcripts } from './conversations/transcripts.js'
import { copyCalls } from './copies/calls.js'
import { Copies } from './copies/copies.js'
import { networkCalls } from './networks/calls.js'
import { wearing } from './personas/messages.js'
import { automaticModel } from './personas/automatic-model.js'
import { customPrompt } from './personas/custom-prompt.js'
import { changesForRules } from './turn/environment/changed-files.js'
import { TurnRules } from './turn/turn-rules.js'
import { personaPointers } from './personas/pointers.js'
import { connectedProviders } from './providers/connected.js'
import { journalSessions, nativeSessionOf } from './providers/native/session.js'
import { Peers } from './providers/acp/peers.js'
import { acpOn } from './providers/acp/turn.js'
import { providerCalls } from './providers/calls.js'
import { Providers } from './providers/providers.js'
import type { SubagentStep } from './providers/adapter.js'
import { scriptAgent, scriptWith } from './providers/script/adapter.js'
import { backgroundCalls } from './processes/calls.js'
import { KeptPrograms } from './processes/kept-programs.js'
import { queueCalls } from './queue/calls.js'
import { MessageDelivery } from './queue/delivery.js'
import { messageChecks } from './queue/message-checks.js'
import { Queue } from './queue/queue.js'
import { recordCalls } from './records/calls.js'
import { Records } from './records/records.js'
import { assertAffordable, budgetsOf, reportSpent, type SpentMeanwhile } from './spending/admission.js'
import { waitingAdmission } from './spending/waiting.js'
import { billed } from './spending/ledger.js'
import { BoundValues } from './secrets/bound-values.js'
import { referencesOf } from './secrets/references.js'
import { StoredValues } from './secrets/stored-values.js'
import { shieldTokens } from './conversations/shield-tokens.js'
import { SubagentArchive } from './subagents/archive.js'
import { subagentCalls } from './subagents/calls.js'
import { subagentLimitsOf } from './subagents/subagents.js'
import { subagentUpdates } from './subagents/updates.js'
import { ToolServers } from './tool-server/tool-servers.js'
import { turnCalls } from './turn/calls.js'
import { briefingCalls } from './briefing/briefing.js'
import { CommandOutputs } from './outputs/command-outputs.js'
import { CommandLogs } from './turn/environment/command-logs.js'
import { CountedPrograms } from './turn/environment/counted-programs.js'
import { Engine } from './turn/engine.js'
import { additionsOf } from './turn/environment/additions.js'
import { LocalTurnEnvironment } from './turn/environment/local-environment.js'
import { ConversationNetworks } from './turn/environment/networks.js'
import { PushMoments } from './turn/push-moments.js'
import { PlannedResumes } from './turn/recovery/planned-resumes.js'
import { programs } from './turn/environment/programs.js'
import { recoverTurns, removeLeftovers } from './turn/recovery/recover-turns.js'
import { withdrawClosed } from './turn/environment/browser.js'
import { showApprovals } from './turn/environment/approvals.js'
import { showNeeds } from './turn/environment/needs.js'
import { endLeftTerminal } from './turn/environment/terminal.js'
import { sweep } from './turn/recovery/recovery.js'
import { ProgramsUnderWay } from './turn/environment/running-programs.js'
import { SharedPrograms } from './turn/environment/shared-programs.js'
import { TurnTiers } from './turn/tier/tiers.js'
import type { Turn } from './turn/turn.js'

const SWEEP_MS = 6 * 3_600_000

export const contract: Contract<Agent> = { ...agent, examples }

/** Who asks an agent to make its work fit. */
const LANDING: Caller = { kind: 'plugin', actor: 'sandbox:landing', role: 'owner' }

/** Serves conversations and their turns. */
export const activate = async (host: Host): Promise<void> => {
  const { journal, store, log, place } = host
  // Before any stored state is read.
  if (await importConversations(host)) log.info('imported the conversations of a restored backup')
  const { workspace, data, hidden, grants } = place
  const changes = new Changes(id => host.emit('agent.changed', { id }))
  const changed = (id: string) => changes.changed(id)
  const conversations = new Conversations(store, log, changed)
  const helped = subagentUpdates(host, () => conversations.all)
  const [queue, remembered] = [new Queue(journal, () => conversations.stored()), new Remembered(store, log)]
  const [transcripts, anchors, peers] = [new Transcripts(journal), new Anchors(journal), new Peers()]
  const admit = budgetsOf(host, id => conversations.find(id)?.actsAs)
  const sessions = journalSessions(journal, entry => stored.masker.maskJson(entry))
  const toolServers = new ToolServers(log)
  const admitted = async (conversationId: string, usage?: SpentMeanwhile, subagent?: SubagentStep) => {
    const turn = engine.live(conversationId)
    return turn ? admit(turn, usage, subagent) : { ok: false as const, message: 'the turn is over' }
  }
  const vendor = acpOn(peers, toolServers, ({ conversationId, subagent }) =>
    admitted(conversationId, undefined, subagent),
  )
  const providers = new Providers(
    store,
    log,
    [scriptWith(scriptAgent, vendor)],
    connectedProviders(host, vendor, conversations, {
      sessions,
      admit: ({ conversationId, usage, subagent }) => admitted(conversationId, usage, subagent),
    }),
  )
  const limiter = new Limiter(await wallLimits(place.limits, data), ControlGroups.open(data))
  const copies = new Copies({
    workspace,
    folder: place.folder,
    data,
    hidden,
    grants,
    log,
    limits: id => limiter.of(id),
    network: id => networks.wall(id),
  })
  const listeners = async () => (await host.call('kernel.listeners')).listeners
  const [cards, decisions, locks] = [new OpenCards(), new KeyedMutex(), new KeyedMutex()]
  const settings = async () => ((await host.serves('settings.get')) ? host.call('settings.get') : undefined)
  const limits = async () => subagentLimitsOf(await settings())
  const [underWay, stored] = [new ProgramsUnderWay(), new StoredValues(host)]
  const commands = new CommandLogs(join(place.logs, 'runs'), text => stored.masker.mask(text))
  const bound = new BoundValues({
    host,
    named: target => networks.named(target),
    misdirected: (user, name, target, sentence) => networks.misdirected(user, name, target, sentence),
  })
  const networks: ConversationNetworks = new ConversationNetworks({
    host,
    bound,
    folder: place.folder,
    limiter,
    settings,
    listeners,
    live: id => [engine.live(id) ?? shared.turns(id)].flat(),
  })
  const shared = new SharedPrograms({ data, limiter, network: id => networks.of(id) })
  const outputs = new CommandOutputs(data, store, log)
  const kept = new KeptPrograms({ store, log, masker: () => stored.masker, changed })
  const environment = new LocalTurnEnvironment({
    ...{ workspace, data, host, log, locks, limiter, limits, settings, stored, bound, listeners },
    ...{ conversations, copies, anchors, commands, outputs, remembered, networks, shared, underWay, kept },
    leaveShared: id => peers.leaveShared(id),
    lineHashes: async () => (await settings())?.hashlineEdits ?? false,
    instructions: async () => customPrompt(await settings()),
    references: (user, placeholders) => referencesOf(host, user, placeholders),
    additions: additionsOf(host),
    connected: ({ conversationId, run }, persona) => new ServerTools(host, { conversationId, run }, persona),
    reach: ({ areas, email }) => askReach(host, areas, email),
    subagentDeps: { providers, log, admit },
  })
  const turnHost = {
    journal,
    log,
    cards,
    changed,
    helped: (helper: string) => helped.changed(helper),
    emit: host.emit,
    masker: () => stored.masker,
    signal: host.signal,
  }
  const ready = new Promise<void>(resolve => host.on('daemon.ready', () => resolve()))
  const rules = new TurnRules({ host, changes: changesForRules({ copies, conversations, anchors, locks }) })
  const landing = new AutoLand({
    ...{ host, conversations, ready, rules },
    runs: id => engine.live(id) !== undefined,
    start: async ({ run, ...input }): Promise<unknown> =>
      delivery.deliver(input, { caller: LANDING, own: { run, approved: false, fresh: false } }),
  })
  const setting = async (key: 'autoResumeOnRestart' | 'resumeAfterOutage') => (await settings())?.[key] ?? false
  const resumes = new PlannedResumes({
    engine: () => engine,
    conversations,
    queue,
    decisions,
    log,
    changed,
    setting: () => setting('resumeAfterOutage'),
    signal: host.signal,
  })
  const archive: SubagentArchive = new SubagentArchive({ journal, live: () => engine.turns })
  // The run's record has the same facts, so a failure is only logged.
  const keep = (turn: Turn) =>
    archive
      .keep(turn)
      .catch(error => log.warn('storing what subagents did failed', { run: turn.run, error: String(error) }))
  const waiting = waitingAdmission(host, conversations, providers)
  const engine: Engine = new Engine({
    host: turnHost,
    conversations,
    queue,
    transcripts,
    providers,
    environment,
    decisions,
    locks,
    rules,
    tiers: new TurnTiers({ host, providers, settings }),
    land: turn => landing.land(turn),
    resumes,
    keep,
    admit,
    unaffordable: waiting.why,
    bill: (turn, end) => billed(host, turn, end, conversations.find(turn.conversationId)),
    tell: (turn, end) => moments.ended(turn, end),
    processes: id => kept.processes.count(id),
  })
  const moments = new PushMoments({
    ...{ host, cards, conversations },
    live: id => engine.live(id),
    mask: text => stored.masker.mask(text),
  })
  const tokens = shieldTokens(host)
  const forks = new Forks({ conversations, transcripts, anchors, copies, journal, log, copied: tokens.copy })
  const look: ViewOf = caller => accessViewFor(host, caller)
  const delivery = new MessageDelivery({
    engine,
    conversations,
    queue,
    providers,
    decisions,
    checks: messageChecks(workspace, copies, () => landing.possible()),
    forks,
    transcripts,
    look,
    mask: input => stored.masker.maskJson(input),
    wear: async (input, conversation) =>
      automaticModel(await wearing(host, providers)(input, conversation), conversation, { host, providers }),
    affordable: asked => assertAffordable(host, asked),
  })

  const endPrograms = (id: string) => kept.end(id)
  const rewinding = {
    ...{ endPrograms, host, engine, conversations, queue, transcripts },
    ...{ anchors, copies, decisions, locks, journal, log },
  }
  const clear = async ({ id, repos, branch }: Conversation, purged: boolean) => {
    await kept.forget(id)
    await peers.dropConversation(id)
    if (await host.serves('mcp.release')) await host.call('mcp.release', { conversationId: id })
    await networks.forget(id)
    if (branch) await copies.remove(id, repos)
    await copies.throwAway(conversationHome(data, id))
    outputs.whole.forget(id)
    await Promise.all([
      remembered.forget(id),
      anchors.forget(id),
      sessions.remove(nativeSessionOf(id)),
      archive.forget(id),
      ...(purged ? [commands.forget(id), tokens.purge(id)] : []),
    ])
  }
  const files = new RecordFiles({ workspace, conversations, transcripts, queue, engine })
  const eraser = new Eraser({
    conversations,
    files,
    queue,
    transcripts,
    journal,
    log,
    clear,
    withdrawn: run => engine.arrivals.settle(run),
    gone: ({ conversation: { id }, purged }) =>
      host.emit('conversation.gone', { conversationId: id, how: purged ? 'purged' : 'discarded' }),
  })
  const index = new SearchIndex(place.folder)
  const search = new Search({ index, conversations, transcripts, engine, log, signal: host.signal })
  const records = new Records({
    conversations,
    files,
    transcripts,
    anchors,
    search,
    ...{ decisions, look, log, sessions, local: tokens.isLocal },
    clear: async id => void (await Promise.all([commands.forget(id), tokens.purge(id)])),
  })
  const board = new Board({
    ...{ engine, conversations, queue, transcripts, copies, endPrograms },
    ...{ search, decisions, locks, changed, eraser },
    affordable: waiting.assert,
    archived: ({ id, branch, lastRun }) => {
      peers.dropConversation(id).catch(error => log.warn('ending a waiting program failed', { error: String(error) }))
      host.emit('conversation.archived', { conversationId: id, ...(branch && lastRun && { run: lastRun }) })
    },
  })

  const left = await endLeftWalls(place.data)
  if (left) log.warn('ended programs that the last daemon left running behind its walls', { processes: left })
  await Promise.all([conversations.load(), providers.load(), remembered.load(), archive.load(), kept.processes.load()])
  if (!conversations.hasRecords) await transcripts.attachments.begin()
  for (const conversation of await queue.load())
    if (!conversations.known(conversation.id)) conversations.open(conversation)

  host.boot('Turns of the last run', () =>
    recoverTurns({
      ...rewinding,
      engine,
      cards,
      eraser,
      forks,
      records,
      providers,
      networks,
      environment,
      landing,
      resumes,
      archive,
      data,
      stored,
      autoResume: () => setting('autoResumeOnRestart'),
      endTerminal: id => void ready.then(() => endLeftTerminal(host, engine, id)),
      spent: turn => reportSpent(host, turn, conversations.find(turn.conversationId)?.actsAs),
    }),
  )
  removeLeftovers(host, { archive, conversations, copies, data, engine, environment, journal })
  repeat(host, SWEEP_MS, 'removing old frames, subagents and unsent files', () =>
    Promise.all([sweep({ engine, conversations, journal }), archive.sweep(), files.sweep()]),
  )
  // Prepared after a turn, so that the next private copy is ready at once.
  host.on('turn.settled', ({ branch }) => void (branch && !engine.closing && environment.warm()))
  nameConversations(host, conversations, transcripts)
  showNeeds(host, engine)
  withdrawClosed(host, engine)
  showApprovals(host, engine)
  host.on('settings.changed', ({ keys }) => void (keys.includes('resumeAfterOutage') && resumes.recheck()))
  host.on('settings.changed', ({ keys }) => void (keys.some(key => key.startsWith('network')) && networks.update()))
  host.stopping(async () => {
    await engine.close()
    await kept.close()
    await peers.close()
    toolServers.close()
    await Promise.all([commands.close(), outputs.ledger.close()])
    await environment.idle()
    // Git still needs the networks until then.
    await networks.close()
    index.close()
  })

  host.contribute('system.programs', programs)
  host.contribute('browsers.reach', () => async id => (await networks.of(id)).reach())
  host.contribute('bundle.parts', () => exportConversations(host, conversations.all))
  host.contribute('bundle.takers', () => ['agent'])
  host.contribute('personas.pointers', async () => personaPointers(conversations.all))
  host.contribute('system.processes', () =>
    [...underWay.all, ...peers.processes].map(one => ({ ...one, origin: 'agent' as const })),
  )

  await host.serve(
    contract,
    recorded(host, cards, {
      ...queueCalls({ host, delivery, board, conversations, look, queue, engine }),
      ...turnCalls({
        host,
        environment,
        ...{ engine, conversations, queue, transcripts, providers, decisions, journal, workspace, look, resumes },
        counted: new CountedPrograms(limiter),
        processes: kept.processes,
      }),
      ...cardCalls({ host, engine, cards, conversations, journal, look, reach: areas => askReach(host, areas) }),
      ...conversationCalls({ ...rewinding, engine, host, eraser, look }),
      ...boardCalls({
        host,
        board,
        archive: new ConversationArchive({ board, conversations, engine, log, signal: host.signal }),
        conversations,
        engine,
        transcripts,
        anchors,
        search,
        resumes,
        look,
      }),
      ...providerCalls(providers, host, reply => stored.masker.maskJson(reply)),
      ...recordCalls(records),
      ...subagentCalls(archive),
      ...copyCalls(workspace, copies, conversations, environment),
      ...networkCalls(networks, { host, engine, conversations }),
      ...outputs.calls,
      ...briefingCalls(host, settings, limits),
      ...backgroundCalls({ host, processes: kept.processes, conversations, look }),
    }),
  )
}
