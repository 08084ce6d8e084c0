import { mkdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { accessTo, commonReach, Refusal, refuse, type ReachFolder, ignored } from '../../../../sdk/index.js'
import { listEnv, needProgram, type Env } from '../../../../sdk/node/programs/run.js'
import { GitFailure } from '../../../../sdk/node/programs/git.js'
import { tooLarge } from '../../../../sdk/node/files/large-files.js'
import { inside } from '../../../../sdk/node/files/paths.js'
import { accessViewWith } from '../../../../sdk/node/access/access-view.js'
import { walled, type WallSpec } from '../../../../sdk/node/wall/wall.js'
import type { TurnPersona } from '../../../personas/contract.js'
import type { TreeCommand, TreeProgram } from '../../providers/adapter.js'
import type { Conversation, CopyRepo } from '../../contract.js'
import type { TurnNetwork } from './networks.js'
import { pathOf } from '../../../../sdk/node/repositories/main-repository.js'
import { startFolder } from '../../copies/start-folder.js'
import type { SyncedCopy } from '../../copies/states.js'
import { assertMasking } from '../../queue/message-checks.js'
import type { References } from '../../secrets/references.js'
import type { AdapterRun } from '../adapter-run.js'
import { nameAsSaid } from '../../conversations/titles.js'
import { disksFor } from './additions.js'
import { ConnectOffers } from './connecting.js'
import { needNotes } from './needs.js'
import {
  apartNotice,
  coveredRepos,
  narrowedNotice,
  outsideNotice,
  uncommittedNotice,
  tipNotices,
  unfilteredNotice,
  worktreeFrame,
} from './copy-words.js'
import { skillsOf } from '../../personas/skills.js'
import { briefTurn, instructedIn } from '../../briefing/brief-turn.js'
import { ToldUncommitted } from '../../briefing/told-uncommitted.js'
import { turnNotes } from '../../briefing/turn-notes.js'
import type { ShortenOutput } from '../../outputs/shorten.js'
import { hiddenBy, keptFolders, personaOf, fetchReach, reportUnknownPersona, usedBy } from '../../personas/worn.js'
import { preambleOf } from '../preamble.js'
import { sweepBeside } from '../../tools/tree.js'
import { turnParts } from '../../tools/turn-parts.js'
import { toolbox } from '../../tools/toolbox.js'
import { KnownByConversation } from '../../tools/known-files.js'
import type { Turn } from '../turn.js'
import type { PreparedTurn, TurnEnvironment } from './environment.js'
import type { TurnEnvironmentDeps } from './environment-deps.js'
import { showOwnChanges } from './own-changes.js'
import { turnIo } from '../io.js'
import { SafetyGate } from '../safety-gate.js'
import { attachedFiles, realPaths, visiblePaths } from '../message-paths.js'
import { processReach } from '../../processes/process-tools.js'
import { ownPlaceOf } from './shared-programs.js'
import type { TreeCommandAsked } from '../../copies/contract.js'
import type { ProgramBehindWall } from '../contract.js'
import { conversationWall } from './conversation-wall.js'
import { diagnoseIn } from '../../diagnostics/diagnose-in.js'
import { documentsOf } from './documents.js'
import { IgnoredFiles } from './ignored-files.js'
import { renewApart } from './renew-apart.js'
import { onlyReads, trustApart, trustOf, waitsAfterOthers } from './trust.js'
import { homeOfConversation } from '../../../../sdk/node/wall/home.js'
import { aroundOf, treeCommand, type ProgramListeners } from './shell.js'
import { saveSharedState } from './shared-state.js'
import { reachOfTurn } from '../../networks/turn-reach.js'
import { turnCredential } from '../../networks/turn-credential.js'

interface Tree extends PreparedTurn {
  readonly wall: Omit<WallSpec, 'cwd' | 'env'>
  readonly reach: TurnNetwork['reach']
  readonly expose: TurnNetwork['serve']
  /** The variables of every program of the turn, with values of secrets. */
  readonly variables: Env
  readonly ofCommands: () => Promise<Env>
  readonly shorten?: ShortenOutput
}

/** How long the end of a turn waits for a running landing. */
const SETTLE_MS = 30_000
/** Why a program ended whose rights its turn no longer has, as the end of a sentence. */
const OTHERS = 'because words of somebody who may not land, or content from outside, came in'

/** Says in a turn what became of its private copy. */
const warn = (turn: Turn, text: string): void =>
  void turn.log.push({ kind: 'notice', level: 'warning', text, source: 'copies' })

/** Prepares private copies, writes the frames before a provider's first one, and gives adapters the tools. */
export class LocalTurnEnvironment implements TurnEnvironment {
  readonly #deps: TurnEnvironmentDeps
  readonly #networks = new WeakMap<Turn, TurnNetwork>()
  readonly #ignored = new IgnoredFiles()
  readonly #trees = new WeakMap<Turn, Tree>()
  readonly #known = new KnownByConversation()
  readonly #uncommitted: ToldUncommitted
  readonly #safety: SafetyGate
  readonly #offers: ConnectOffers
  #warming: Promise<void> | undefined

  constructor(deps: TurnEnvironmentDeps) {
    this.#deps = deps
    this.#safety = new SafetyGate(deps.host)
    this.#offers = new ConnectOffers(deps.host)
    this.#uncommitted = new ToldUncommitted(deps.host)
  }

  async prepare(turn: Turn, conversation: Conversation): Promise<Tree> {
    const { copies, conversations, workspace, locks, limiter, data, kept } = this.#deps
    const { id, branch } = conversation
    await waitsAfterOthers(conversations, turn)
    const trustNow = () => trustOf(turn, conversations.find(id))
    await kept.endOthers(id, { trust: trustNow() })
    turn.entry.onOthers = () => void kept.endOthers(id, { trust: trustNow() }, OTHERS)
    void turn.ended.then(limiter.of(id).listen(sentence => turn.fail(sentence)))
    const { input } = turn.message
    const again = turn.record.prepared
    await this.#deps.stored.refresh()
    let exits = false
    const network = await this.#deps.networks.of(id, () => exits)
    this.#networks.set(turn, network)
    const changes = this.#uncommitted.read(turn)
    const release = await locks.hold(id, turn.signal)
    let sync: { commits: number; blocked: string[] } | undefined
    try {
      if (!branch && !again) await saveSharedState(this.#deps, turn)
      if (branch) sync = await this.#copy(turn, await renewApart(this.#deps, turn, conversations.get(id)), again)
    } finally {
      release()
    }
    const root = branch ? copies.dir(id) : workspace
    const areas = await this.#folders(turn, conversation, root)
    if (areas && !turn.message.limits && !again)
      turn.log.push({ kind: 'notice', level: 'info', text: narrowedNotice(areas), source: 'areas' })
    const seen = accessViewWith(workspace, areas)
    const attachments = await attachedFiles(workspace, await visiblePaths(input.attachments ?? [], seen))
    const mentions = await realPaths(workspace, await visiblePaths(input.mentions ?? [], seen))
    const copyWall = await copies.wall(branch ? id : undefined)
    const persona = await personaOf(this.#deps.host, conversation.actsAs)
    const folders = keptFolders(persona, areas)
    exits = reachOfTurn(turn, conversation, { persona, folders }).sandbox
    const skills = await skillsOf(this.#deps.host, persona, folders)
    const answers = await needNotes(this.#deps.host, turn)
    // Others may have answered.
    await waitsAfterOthers(conversations, turn)
    const access = { trust: trustNow(), reach: processReach({ folders, ...(persona && { persona }) }) }
    await kept.endOthers(id, access)
    const added = await this.#deps.additions(id, persona, access)
    const allowedTools = persona?.known === false ? [] : input.allowedTools
    const [landing, waiting] = await Promise.all([
      homeOfConversation(data, id, { alone: folders !== undefined }),
      homeOfConversation(data, id, { alone: folders !== undefined, trust: trustApart(turn) }),
    ])
    const wall = await conversationWall(this.#deps, copyWall, {
      ...{ id, network, folders, trust: trustNow() },
      ...(persona && { persona }),
    })
    const around = aroundOf(copyWall)
    const brief = await briefTurn(this.#deps, turn, { root, folders, hidden: hiddenBy(wall), persona, around, skills })
    const uncommitted = this.#uncommitted.of(turn, conversations.get(id), folders, await changes)
    const facts = { mentions, attachments: attachments.map(({ path }) => path), ...(sync && { sync }) }
    const notes = await turnNotes(this.#deps, turn, {
      ...{
        skills,
        persona,
        around,
        facts,
        uncommitted,
        answers,
        folders,
        allowedTools,
        session: conversation.session,
        access,
      },
      more: { before: added.notes ?? [], after: brief.notes },
    })
    if (notes.length && !turn.record.notes) turn.log.push({ kind: 'preamble', notes })
    if (persona && !again) reportUnknownPersona(this.#deps.host, turn, persona)
    const documents = await documentsOf(workspace, turn.message.document)
    const ownPlace = await ownPlaceOf(wall, id)
    const instructions = persona?.ownPrompt ? undefined : await this.#deps.instructions()
    return {
      helpers: await this.#deps.limits(),
      lineHashes: await this.#deps.lineHashes(),
      root,
      cwd: await startFolder(workspace, root, conversation, folders),
      preamble: preambleOf(notes),
      attachments,
      mentions,
      wall: {
        ...wall,
        // Words of somebody who may not land can come at any time: programs that start after them are apart.
        get home() {
          return trustNow() === 'lands' ? landing : waiting
        },
        path: added.path,
        shown: [...(wall.shown ?? []), ...(added.files ?? []), ...brief.shown],
        disks: disksFor(this.#deps.host, {
          ...{ persona, limited: areas !== undefined || input.outsideWake !== undefined },
          trust: trustNow,
        }),
        ...(documents !== undefined && { writable: [join(workspace, documents)] }),
      },
      ...(documents !== undefined && { documents }),
      ...(ownPlace !== undefined && { ownPlace }),
      reach: network.reach,
      expose: network.serve,
      variables: added.variables,
      ofCommands: turnCredential(
        this.#deps,
        turn,
        network,
        () => reachOfTurn(turn, conversation, { persona, folders }),
        allowedTools,
      ),
      agentFolders: added.agentFolders,
      ...(persona && { persona }),
      ...(instructions !== undefined && { instructions }),
      ...brief.prepared,
      skills,
      ...(folders && { folders }),
      ...(allowedTools && { allowedTools }),
    }
  }

  /**
   * The folders that a turn is limited to; undefined: the whole tree. Writable folders are created if git has no files
   * in them.
   */
  async #folders(turn: Turn, conversation: Conversation, root: string): Promise<readonly ReachFolder[] | undefined> {
    const { startIn, branch, folders: kept } = conversation
    const { limits } = turn.message
    const { reach, workspace } = this.#deps
    const folders = commonReach(limits && (await reach(limits)), kept)
    if (!folders || accessTo(folders, '.') === 'work') return undefined
    if (!branch)
      refuse('conflict', 'expected a private copy, found the shared tree: no turn in it can be limited to folders')
    await assertMasking()
    if ((await accessViewWith(workspace, folders).access(startIn)) !== 'work') {
      refuse('forbidden', `the turn was to start in ${startIn ?? 'the workspace root'}, where it may no longer write`)
    }
    for (const { path, access } of folders)
      if (access === 'work') await mkdir(await inside(root, path, { allowMissing: true }), { recursive: true })
    return folders
  }

  /** Prepares the private copy for a turn: creates or repairs it, updates it, stores its checkpoint. */
  async #copy(turn: Turn, { id, repos: before, starts, folders }: Conversation, again: boolean) {
    const { copies, conversations, anchors } = this.#deps
    const opened = await copies.open(id, before, starts)
    if (again) return undefined
    const sync = before.length ? await this.#sync(turn, id, opened.repos) : undefined
    const { branch } = opened
    const { repos, checkpoint } = sync ?? opened
    await conversations.update(id, { branch, repos, starts: undefined })
    const shown = sync && { commits: sync.commits, blocked: coveredRepos(folders, sync.blocked) }
    turn.log.push(await worktreeFrame(branch, repos, this.#networks.get(turn), shown))
    for (const { repo, filters } of opened.unfiltered ?? []) warn(turn, unfilteredNotice(repo, filters))
    const { id: state, commits } = checkpoint ?? (await copies.checkpoint(id, repos))
    const kept = commits.map(({ repo, tip }) => ({
      repo,
      tip,
      base: repos.find(each => each.repo === repo)?.base ?? tip,
    }))
    await anchors.keep(id, { id: state, run: turn.run, index: turn.index, repos: kept })
    turn.log.push({ kind: 'checkpoint', id: state, index: turn.index })
    for (const { repo, large = [] } of commits)
      for (const { path, size } of large) warn(turn, tooLarge(join(pathOf(repo), path), size))
    return shown
  }

  /** Prepares the next conversation's copy ahead of time; one at a time, and `idle` waits for it. */
  warm(): Promise<void> {
    const { copies, log } = this.#deps
    this.#warming ??= copies
      .warm()
      .catch(error => log.warn('preparing a warm copy failed', { error: String(error) }))
      .finally(() => (this.#warming = undefined))
    return this.#warming
  }

  /** Removes what a killed daemon left half-written beside these paths of a conversation's tree. */
  async sweep({ id, branch }: Conversation, paths: readonly string[]): Promise<void> {
    const { copies, workspace } = this.#deps
    for (const path of paths)
      await sweepBeside(branch ? copies.dir(id) : workspace, path).catch(ignored('the next start sweeps it'))
  }

  /** Resolves when no warm copy is being prepared. */
  async idle(): Promise<void> {
    await this.#deps.copies.close()
    await this.#warming
  }

  async #sync(turn: Turn, id: string, repos: readonly CopyRepo[]): Promise<Omit<SyncedCopy, 'reports'>> {
    try {
      return await this.#deps.copies.sync(id, repos)
    } catch (error) {
      if (turn.signal.aborted || error instanceof Refusal) throw error
      this.#deps.log.error('updating a private copy failed', { conversation: id, error: String(error) })
      return { repos: [...repos], commits: 0, blocked: repos.map(({ repo }) => repo) }
    }
  }

  async refresh(turn: Turn, { id, branch, folders }: Conversation): Promise<void> {
    const { copies, conversations, locks } = this.#deps
    if (!branch) return
    const release = await locks.hold(id, turn.signal)
    try {
      const { repos } = conversations.get(id)
      const { repos: moved, commits, blocked } = await this.#sync(turn, id, await copies.ensure(id, repos))
      await conversations.update(id, { repos: moved })
      const frame = await worktreeFrame(branch, moved, this.#networks.get(turn), {
        commits,
        blocked: coveredRepos(folders, blocked),
      })
      // The turn, and with it its log, may have ended meanwhile.
      if (!turn.leaving) await turn.log.write(frame)
    } finally {
      release()
    }
  }

  async settle(turn: Turn, { id, branch, repos }: Conversation): Promise<void> {
    const { copies, locks, log, kept } = this.#deps
    // A stop by hand ends what the turn started; what earlier turns started runs on.
    if (turn.stopping) await kept.processes.end(id, 'when its turn was stopped', ({ run }) => run === turn.run)
    if (!branch || repos.length === 0) return
    try {
      const release = await locks.hold(id, AbortSignal.timeout(SETTLE_MS))
      try {
        const tips = await copies.commitRest(id, repos)
        turn.taken = tips.every(({ large, out }) => !large && out === undefined)
        const notices = tipNotices(tips, branch, this.#ignored.newOf(id, tips))
        for (const notice of turn.record.done ? [] : notices) warn(turn, notice)
        await showOwnChanges(this.#deps, turn, repos, tips)
        const apart = await copies.apart(id, tips)
        if (apart.length && !turn.record.done) warn(turn, apartNotice(apart))
        const beside = await copies.beside(id)
        if (beside.length && !turn.record.done) warn(turn, outsideNotice(beside, repos))
      } finally {
        release()
      }
    } catch (error) {
      // The next turn, landing or diff repeats the import and reports why it fails.
      if (error instanceof GitFailure && !turn.record.done) warn(turn, uncommittedNotice(error))
      log.warn('importing the work of a turn failed', { conversation: id, run: turn.run, error: String(error) })
    }
  }

  /** The command that runs a program behind the wall of a turn. */
  async walled(turn: Turn, program: TreeProgram): Promise<TreeCommand> {
    const tree = this.treeOf(turn)
    const { wall, root, cwd } = tree
    const begun = this.#deps.commands.of(turn.conversationId, turn.run)
    return treeCommand(wall, root, cwd, { ...program, ...(program.engine && onlyReads(turn, tree)) }, begun)
  }

  /** The tree of a turn that runs, and the folders of it that the turn is limited to. */
  treeOf(turn: Turn): Tree {
    return this.#trees.get(turn) ?? refuse('conflict', 'the turn is being prepared: try again when it runs')
  }

  /** The command that runs a shell command in the tree of a conversation, while no turn has to run. */
  async checking(
    conversation: Conversation,
    { command, folder }: Pick<TreeCommandAsked, 'command' | 'folder'>,
  ): Promise<ProgramBehindWall> {
    const { copies, workspace, host, networks } = this.#deps
    const { id, branch, actsAs, folders: reached } = conversation
    const root = branch ? copies.dir(id) : workspace
    const persona = await personaOf(host, actsAs)
    const folders = keptFolders(persona, reached)
    const wall = await conversationWall(this.#deps, await copies.wall(branch && id), {
      ...{ id, folders, network: await networks.of(id), trust: conversation.landsAlone ? 'lands' : 'waits' },
      ...(persona && { persona }),
    })
    const own = folder === '.' ? root : folder && (await inside(root, folder))
    const start = own ?? (await startFolder(workspace, root, conversation, folders))
    const cwd = join(workspace, relative(root, start))
    const { limits: _limits, ...started } = await walled(
      { ...wall, cwd, env: listEnv({ PWD: cwd }) },
      await needProgram('sh'),
      ['-c', command],
    )
    return { ...started, env: { ...started.env } as ProgramBehindWall['env'] }
  }

  io(turn: Turn, prepared: PreparedTurn, adapterRun: AdapterRun) {
    const { remembered, subagentDeps, underWay, commands, outputs, kept } = this.#deps
    // Every `PreparedTurn` of this environment was made by `prepare`.
    const tree = prepared as Tree
    const { wall, reach, expose, variables } = tree
    this.#trees.set(turn, tree)
    const { conversationId } = turn
    const begun = commands.of(conversationId, turn.run)
    const trust = () => trustOf(turn, this.#deps.conversations.find(conversationId))
    const access = () => ({ trust: trust(), reach: processReach(prepared) })
    const persona = prepared.persona?.id
    const sharing = { turn, wall, root: tree.root, cwd: tree.cwd, begun, ...(persona !== undefined && { persona }) }
    const programs: ProgramListeners = {
      onStart: (pid, over) => underWay.begun(conversationId, pid, over),
      begun,
      env: variables,
      ofCommands: tree.ofCommands,
      shorten: tree.shorten,
      shared: program => this.#deps.shared.of(sharing, program),
      starts: () => void (turn.sharesHome ||= trust() === 'lands'),
    }
    return turnIo(turn, prepared, adapterRun, {
      ...{ subagentDeps, expose, safety: this.#safety, instructed: instructedIn(prepared, wall) },
      picture: (name, bytes) => outputs.picture(conversationId, name, bytes),
      keep: prepared.outputs === undefined ? undefined : text => outputs.keep(conversationId, text),
      titled: text => nameAsSaid(this.#deps, conversationId, text),
      connected: this.#deps.connected(turn, prepared.persona),
      remembered: { names: () => remembered.names(conversationId), add: name => remembered.add(conversationId, name) },
      toolbox: toolbox(
        {
          ...prepared,
          // A script knows what it does.
          ...(turn.entry.fields.provider !== 'script' && {
            known: this.#known.of(conversationId),
            diagnose: diagnoseIn(kept.diagnostics, turn, prepared, {
              ...{ wall, access, remembered: () => remembered.names(conversationId) },
            }),
          }),
        },
        wall,
        fetchReach(prepared.persona, reach),
        programs,
        this.#references(turn, this.#networks.get(turn), prepared.persona),
        turnParts(this.#deps, this.#offers, turn, prepared, { wall, programs, access }),
      ),
    })
  }

  #references(turn: Turn, network: TurnNetwork | undefined, persona: TurnPersona | undefined): References {
    const { references, bound } = this.#deps
    const user = { conversationId: turn.conversationId, run: turn.run, ...usedBy(persona) }
    const placeholders = bound.of({ ...user, ended: turn.ended })
    return references(user, async () => ((await network?.kind()) === 'own' ? placeholders : undefined))
  }
}
