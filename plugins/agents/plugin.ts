import { covers, refuse, type Contract, type Host, type Ok, ignored } from '../../sdk/index.js'
import { requireBranch } from '../../sdk/node/access/conversation-branch.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import type { AccessView } from '../../sdk/node/access/access-view.js'
import { cardFor, cardsFor } from '../../sdk/node/access/card-view.js'
import type { CheckoutRepo, ConversationState, LandConflict } from '../agent/contract.js'
import { Archive } from './roster/archive.js'
import type { ScratchRepo } from './work/scratch-repo.js'
import { ScratchRepos } from './work/scratch-repos.js'
import { changedSidesOf, changesOf } from './work/changes.js'
import { conflictsOf } from './landing/conflicts.js'
import { agents, type Agents, type AgentCard, type AgentChanges, type Conflicts } from './contract.js'
import { examples } from './examples.js'
import { fileSides, writtenSides } from './work/file-sides.js'
import { asRefusal, Fleet } from './roster/fleet.js'
import { Refs } from './work/git-folders.js'
import { LandedMessages } from './landing/landed-messages.js'
import { LandedOrigins } from './landing/landed-origins.js'
import { notingLandings, originsOf } from './landing/landed-work.js'
import { LandingRecords } from './landing/record.js'
import { lookAt, takenOver, type Repository } from './work/repository.js'
import { LandedEvents } from './roster/landed-events.js'
import { Retention } from './roster/retention.js'
import { RosterBook } from './roster/roster.js'
import { RunNotes } from './work/run-notes.js'
import { changesFor, withAccessView, reportsFor, seesFile, type ViewingHandlers } from './roster/access-view.js'
import { BranchStatuses } from './work/branch-status.js'
import { Syncing } from './landing/sync.js'
import { submodulesAmong } from './landing/module-commit.js'
import { sharedLock } from './landing/shared-lock.js'

export const contract: Contract<Agents> = { ...agents, examples }

const subjectOf = (conversationId: string, title: string | undefined) => ({
  conversationId,
  ...(title !== undefined && { title }),
})

const seeing = (seen: AccessView) => (repo: string, path: string) => seesFile(seen, repo, path)

export const activate = async (host: Host): Promise<void> => {
  const { workspace, folder, data, hidden, grants } = host.place
  const scratchRepos = new ScratchRepos(folder, { workspace, data, hide: hidden, grants })
  await scratchRepos.clear()
  const refs = new Refs()
  const failed = (message: string, fields: object) => host.log.warn(message, fields)
  const statuses = new BranchStatuses({ workspace, scratchRepos, refs, signal: host.signal, files: host.files, failed })
  const notes = new RunNotes(host)
  const origins = new LandedOrigins(host.files)
  const messages = new LandedMessages({
    host,
    files: host.files,
    now: Date.now,
    changed: id => {
      host.emit('agent.described', { agentId: id })
      host
        .call('kernel.events.publish', { domain: 'landings', key: id })
        .catch(error => host.log.warn('publishing the message of a landing failed', { error: String(error) }))
    },
  })
  const turns = new KeyedMutex()
  const fleet = new Fleet({
    host,
    notes,
    workspace,
    scratchRepos,
    refs,
    statuses,
    locks: sharedLock(host),
    turns,
    records: new LandingRecords(host.files),
    landed: notingLandings(host, { origins, messages }, { refs, scratchRepos }),
    now: Date.now,
  })
  const conversations = async (archived: boolean) =>
    (await host.call('agent.conversations', { archived })).conversations
  const conversation = (id: string) => host.call('agent.conversation', { id })
  const shownBeside = async (ids: string[]) => ({
    loops: (await host.serves('loops.cards')) ? (await host.call('loops.cards', { ids })).loops : {},
    workflows: (await host.serves('workflows.cards')) ? (await host.call('workflows.cards', { ids })).workflows : {},
  })
  const roster = new RosterBook({
    ...{ files: host.files, statuses, conversations, conversation, notes, messages },
    shown: shownBeside,
  })
  const archive = new Archive({ host, roster, conversations })
  // Cards wait for it; a start does not, however many conversations landed.
  void messages.open()
  await Promise.all([roster.open(), statuses.open()])

  /** One conversation with its branch and the repositories of its copy. */
  const work = async (id: string) => {
    const state = await host.call('agent.conversation', { id })
    const branch = requireBranch(state.conversation, 'there is nothing to compare')
    const { repos } = await host.call('checkouts.repos', { id })
    // If all work is on the branch, reads only that: scanning a large copy takes long.
    const shown = (await notes.holdsAll(state))
      ? repos.map(({ copy: _looked, ...repo }): CheckoutRepo => takenOver(repo))
      : repos
    return { conversation: state.conversation, branch, repos: shown }
  }

  const diff = async (id: string, signal: AbortSignal): Promise<AgentChanges> => {
    await notes.commit(await host.call('agent.conversation', { id }))
    const { conversation, branch, repos } = await work(id)
    const refused = new Set(conversation.conflicts?.map(({ repo }) => repo))
    const submodules = await submodulesAmong(refs, repos)
    const shown: AgentChanges['repos'] = []
    const conflicts: LandConflict[] = []
    for (const checkout of repos) {
      const repository = lookAt(refs, checkout, branch)
      if (!repository) {
        if (refused.has(checkout.repo)) conflicts.push({ repo: checkout.repo, paths: [], clean: 0 })
        failed('a repository of a conversation does not exist', { conversation: id, repo: checkout.repo })
        continue
      }
      try {
        const { changes, conflict } = await scratchRepos.with(
          repository,
          scratch => {
            const { repo } = checkout
            return changesOf(scratch, repository, workspace, branch, refused.has(repo), submodules.has(repo))
          },
          signal,
        )
        shown.push(changes)
        if (conflict) conflicts.push(conflict)
      } catch (error) {
        signal.throwIfAborted()
        failed('comparing a repository failed', { conversation: id, repo: checkout.repo, error: String(error) })
      }
    }
    return { repos: shown, ...(conflicts.length > 0 && { conflicts }) }
  }

  /** Reads one repository of a conversation, of those that the caller sees. */
  const inRepository = async <T>(
    id: string,
    repo: string,
    seen: AccessView,
    signal: AbortSignal,
    read: (scratch: ScratchRepo, repository: Repository, inside: (path: string) => boolean) => Promise<T>,
  ): Promise<T> => {
    const { branch, repos: all } = await work(id)
    const repos = all.filter(known => covers(seen.reach, known.repo) !== 'none')
    const checkout: CheckoutRepo =
      repos.find(known => known.repo === repo)
      ?? refuse(
        'not-found',
        `${id} holds no repository ${repo}: its repositories are ${repos.map(known => known.repo).join(', ')}`,
      )
    const repository =
      lookAt(refs, checkout, branch)
      ?? (checkout.main === undefined
        ? refuse('not-found', `the workspace has no repository ${JSON.stringify(repo.slice(0, 200))}`)
        : refuse('conflict', `the branch ${branch} of ${id} is gone from ${repo}, so there is nothing to compare`))
    try {
      return await scratchRepos.with(
        repository,
        scratch => read(scratch, repository, at => seesFile(seen, repo, at)),
        signal,
      )
    } catch (error) {
      throw asRefusal(error)
    }
  }

  const conflicts = async (
    id: string,
    file: { repo: string; path: string } | undefined,
    seen: AccessView,
    signal: AbortSignal,
  ): Promise<Conflicts> => {
    const { branch, repos } = await work(id)
    const repositories = repos
      .filter(({ repo }) => covers(seen.reach, repo) !== 'none')
      .flatMap(checkout => lookAt(refs, checkout, branch) ?? [])
    return conflictsOf({
      scratchRepos,
      workspace,
      branch,
      repositories,
      signal,
      inside: (repo, path) => seesFile(seen, repo, path),
      ...(file && { file }),
    }).catch(error => Promise.reject(asRefusal(error)))
  }

  const syncing = new Syncing({ host, turns, scratchRepos, refs, statuses })
  const recorded = new LandedEvents(host)

  /** A card for the caller. */
  const shown = async (seen: AccessView, card: Promise<AgentCard>) => cardFor(seen, await card)

  const assertOutstanding = async (state: ConversationState): Promise<Ok> => {
    const { id } = state.conversation
    await notes.commit(state)
    const { work } = await statuses.of(state.conversation)
    const failure = notes.failure(id)
    if (failure !== undefined) refuse('dependency', `the work of ${id} is not on its branch yet: ${failure}`)
    if (work !== 'outstanding') refuse('conflict', `${id} has no outstanding work to land`)
    return { ok: true }
  }

  const handlers: ViewingHandlers<Agents> = {
    'GET /agents': async (_input, _context, seen) => {
      const { agents: all, ...rest } = await roster.read()
      const held = (await host.serves('automations.held')) ? (await host.call('automations.held')).held : []
      return { ...rest, held, agents: await cardsFor(seen, all) }
    },
    'GET /agents/{id}': async ({ id }, _context, seen) =>
      shown(seen, roster.card(await host.call('agent.conversation', { id }))),
    'GET /agents/{id}/diff': async ({ id }, { signal }, seen) => changesFor(seen, await diff(id, signal)),
    'GET /agents/{id}/{repo}/file-diff': ({ id, repo, path }, { signal }, seen) =>
      inRepository(id, repo, seen, signal, (scratch, repository, inside) =>
        fileSides(scratch, repository, path, inside),
      ),
    'GET /agents/{id}/conflicts': ({ id, repo, path }, { signal }, seen) => {
      if ((repo === undefined) !== (path === undefined))
        refuse('invalid', 'expected both repo and path, or neither, found only one')
      return conflicts(id, repo !== undefined && path !== undefined ? { repo, path } : undefined, seen, signal)
    },
    'POST /agents/{id}/land': async (
      { span = 'outstanding', force = false, mode = 'check', ...order },
      context,
      seen,
    ) => {
      const { result, title } = await fleet.land({ ...order, span, force, mode, sees: seeing(seen) }, context.signal)
      await recorded.landing(subjectOf(order.id, title), result, context)
      return result
    },
    'POST /agents/land': async ({ ids, mode = 'check', ...expected }, context, seen) => {
      const landed = await fleet.landMany(ids, { mode, ...expected, sees: seeing(seen) }, context.signal)
      for (const { id, result, title } of landed)
        if (result) await recorded.landing(subjectOf(id, title), result, context)
      return { results: landed.map(({ title: _title, ...outcome }) => outcome) }
    },
    'POST /agents/{id}/sync': async ({ id }, { signal }, seen) => {
      const repos = reportsFor(seen, await syncing.sync(id, signal))
      return { repos, agent: await shown(seen, roster.card(await host.call('agent.conversation', { id }))) }
    },
    'POST /agents/{id}/discard': async (order, context, seen) => {
      const title = await fleet.discard({ ...order, sees: seeing(seen) }, context.signal)
      await recorded.discard(subjectOf(order.id, title), context)
      return { ok: true }
    },
    'GET /agents/archived': ({ limit, before }, _context, seen) => archive.list(seen, limit, before),
    'agents.cards': ({ ids }) => roster.some(ids),
    'agents.card': ({ state }) => roster.card(state),
    'agents.moved': async ({ states }) => {
      const { rev } = await roster.read()
      return { moved: await roster.cards(states), rev }
    },
    'agents.finished': async () => ({ ids: await archive.finished() }),
    'agents.sides': ({ id, repo, path, folder, most }, { signal }, seen) =>
      inRepository(id, repo, seen, signal, (scratch, repository, inside) =>
        writtenSides(folder, most, scratch, repository, path, inside),
      ),
    'agents.changed': ({ id, repo }, { signal }, seen) =>
      inRepository(id, repo, seen, signal, async (scratch, repository, inside) => ({
        changes: (await changedSidesOf(scratch, repository))
          .filter(({ path }) => inside(path))
          .map(({ from, before, ...change }) =>
            from === undefined || inside(from)
              ? { ...change, ...(from !== undefined && { from }), ...(before && { before }) }
              : change,
          ),
      })),
    'agents.assertOutstanding': ({ state }) => assertOutstanding(state),
    'agents.origins': ({ repo }) => originsOf(host, repo, { origins, messages }),
  }
  await host.serve(agents, withAccessView(host, handlers))
  host.on('conversation.gone', ({ conversationId: id, how }) => {
    statuses.forget(id)
    void messages.forget(id).catch(ignored('a message of nothing only takes space'))
    notes
      .forget(id)
      .catch(error =>
        host.log.warn('deleting the note on a conversation failed', { conversation: id, error: String(error) }),
      )
    host.emit('agent.removed', { agentId: id, how })
  })
  host.on('conversation.archived', ({ conversationId: id, run }) => {
    if (run !== undefined)
      notes
        .noteCommitted(id, run)
        .catch(error =>
          host.log.warn('noting that all work is on the branch failed', { conversation: id, error: String(error) }),
        )
    host.emit('agent.archived', { agentId: id })
  })
  host.on('turn.settled', ({ conversationId: id, run, taken }) => {
    void host
      .call('agent.conversation', { id })
      .then(state => (taken && state.conversation.lastRun === run ? notes.noteCommitted(id, run) : notes.commit(state)))
      .catch(ignored('the conversation may have been deleted'))
  })
  new Retention({ host, archive, now: Date.now }).begin()
  host.stopping(async () => {
    await notes.close()
    await statuses.close()
  })
  host.boot('landings that were cut off', () => fleet.recover())
}
