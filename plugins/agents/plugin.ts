import { covers, refuse, type Contract, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import type { AccessView } from '../../sdk/node/access/access-view.js'
import type { CheckoutRepo, LandConflict } from '../agent/contract.js'
import { Archive } from './roster/archive.js'
import { ScratchRepos } from './work/scratch-repos.js'
import { Marks } from './roster/marks.js'
import { changesOf } from './work/changes.js'
import { conflictsOf } from './landing/conflicts.js'
import { agents, type Agents, type AgentCard, type AgentChanges, type Conflicts, type TwoSides } from './contract.js'
import { examples } from './examples.js'
import { fileSides } from './work/file-sides.js'
import { asRefusal, checkReader, Fleet, withBranch } from './roster/fleet.js'
import { Refs } from './work/git-folders.js'
import { LandingRecords } from './landing/record.js'
import { lookAt, takenOver } from './work/repository.js'
import { LandedEvents } from './roster/landed-events.js'
import { Retention } from './roster/retention.js'
import { RosterBook } from './roster/roster.js'
import { RunNotes } from './work/run-notes.js'
import {
  cardFor,
  cardsFor,
  changesFor,
  withAccessView,
  reportsFor,
  seesFile,
  within,
  type ViewingHandlers,
} from './roster/access-view.js'
import { BranchStatuses } from './work/branch-status.js'
import { Syncing } from './landing/sync.js'

export const contract: Contract<Agents> = { ...agents, examples }

export const activate = async (host: Host): Promise<void> => {
  const { workspace, folder } = host.place
  const benches = new ScratchRepos(folder)
  await benches.clear()
  const refs = new Refs()
  const failed = (message: string, fields: object) => host.log.warn(message, fields)
  const standings = new BranchStatuses({ workspace, benches, refs, signal: host.signal, files: host.files, failed })
  const notes = new RunNotes(host)
  const turns = new KeyedMutex()
  const fleet = new Fleet({
    host,
    notes,
    workspace,
    benches,
    refs,
    standings,
    locks: new KeyedMutex(),
    turns,
    records: new LandingRecords(host.files),
    now: Date.now,
  })
  const conversations = async () => (await host.call('agent.conversations')).conversations
  const conversation = (id: string) => host.call('agent.conversation', { id })
  const roster = new RosterBook({ files: host.files, standings, conversations, conversation, notes })
  const archive = new Archive({ host, roster, notes, standings, conversations })
  const marks = new Marks({ host, roster, notes, standings, conversations, now: Date.now })
  await Promise.all([notes.open(), roster.open(), standings.open()])

  /** One conversation with its branch and the repositories of its copy. */
  const work = async (id: string) => {
    const state = await host.call('agent.conversation', { id })
    const branch = withBranch(state, 'there is nothing to compare')
    const { repos } = await host.call('checkouts.repos', { id })
    // What is all on the branch is read there: a copy with many files takes long to look through.
    const shown = notes.holdsAll(state)
      ? repos.map(({ copy: _looked, ...repo }): CheckoutRepo => takenOver(repo))
      : repos
    return { conversation: state.conversation, branch, repos: shown }
  }

  const diff = async (id: string, signal: AbortSignal): Promise<AgentChanges> => {
    const { conversation, branch, repos } = await work(id)
    const refused = new Set(conversation.conflicts?.map(({ repo }) => repo))
    const shown: AgentChanges['repos'] = []
    const conflicts: LandConflict[] = []
    for (const checkout of repos) {
      const repository = lookAt(refs, checkout, branch)
      if (!repository) {
        if (refused.has(checkout.repo)) conflicts.push({ repo: checkout.repo, paths: [], clean: 0 })
        failed('a repository of a conversation is gone', { conversation: id, repo: checkout.repo })
        continue
      }
      try {
        const { changes, conflict } = await benches.with(
          repository,
          bench => changesOf(bench, repository, workspace, branch, refused.has(checkout.repo)),
          signal,
        )
        shown.push(changes)
        if (conflict) conflicts.push(conflict)
      } catch (error) {
        signal.throwIfAborted()
        failed('a repository could not be compared', { conversation: id, repo: checkout.repo, error: String(error) })
      }
    }
    return { repos: shown, ...(conflicts.length > 0 && { conflicts }) }
  }

  const sides = async (
    id: string,
    repo: string,
    path: string,
    seen: AccessView,
    signal: AbortSignal,
  ): Promise<TwoSides> => {
    const { branch, repos: all } = await work(id)
    const repos = all.filter(known => covers(seen.reach, known.repo) !== 'none')
    const checkout: CheckoutRepo =
      repos.find(known => known.repo === repo)
      ?? refuse(
        'not-found',
        `${id} holds no repository ${repo}: its repositories are ${repos.map(known => known.repo).join(', ')}`,
      )
    const repository =
      lookAt(refs, checkout, branch) ?? refuse('not-found', `the repository ${repo} is gone from the workspace`)
    try {
      return await benches.with(
        repository,
        bench => fileSides(bench, repository, path, at => seesFile(seen, repo, at)),
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
      benches,
      workspace,
      branch,
      repositories,
      signal,
      inside: (repo, path) => seesFile(seen, repo, path),
      ...(file && { file }),
    }).catch(error => Promise.reject(asRefusal(error)))
  }

  const syncing = new Syncing({ host, turns, benches, refs, standings })
  const recorded = new LandedEvents(host)

  /** A card as its asker is shown it. */
  const shown = async (seen: AccessView, card: Promise<AgentCard>) => cardFor(seen, await card)

  /** The ids of those that an asker who names none means; undefined: all. */
  const meant = async (ids: string[] | undefined, seen: AccessView): Promise<string[] | undefined> => {
    if (ids || !seen.reach) return ids
    return (await within(seen, await conversations(), true))
      .filter(({ conversation }) => conversation.archivedAt === undefined)
      .map(({ conversation }) => conversation.id)
  }

  const handlers: ViewingHandlers<Agents> = {
    'GET /agents': async (_input, _context, seen) => {
      const { agents: all, ...rest } = await roster.read()
      return { ...rest, agents: await cardsFor(seen, all) }
    },
    'GET /agents/{id}': async ({ id }, _context, seen) =>
      shown(seen, roster.card(await host.call('agent.conversation', { id }))),
    'GET /agents/{id}/transcript': async ({ id, limit, before }, { caller }) => {
      checkReader(await host.call('agent.conversation', { id }), caller)
      return host.call('agent.transcript', {
        id,
        ...(limit !== undefined && { limit }),
        ...(before !== undefined && { before }),
      })
    },
    'GET /agents/{id}/diff': async ({ id }, { signal }, seen) => changesFor(seen, await diff(id, signal)),
    'GET /agents/{id}/{repo}/file-diff': ({ id, repo, path }, { signal }, seen) => sides(id, repo, path, seen, signal),
    'GET /agents/{id}/conflicts': ({ id, repo, path }, { signal }, seen) => {
      if ((repo === undefined) !== (path === undefined))
        refuse('invalid', 'expected both repo and path, or neither, found only one of them')
      return conflicts(id, repo !== undefined && path !== undefined ? { repo, path } : undefined, seen, signal)
    },
    'POST /agents/{id}/land': async ({ span = 'outstanding', force = false, mode = 'check', ...order }, context) => {
      const result = await fleet.land({ ...order, span, force, mode }, context.signal)
      if (result.landed) await marks.answered(order.id)
      await recorded.landing(order.id, result, context)
      return result
    },
    'POST /agents/land': async ({ ids, mode = 'check' }, context) => {
      const results = await fleet.landMany(ids, mode, context.signal)
      for (const { id, result } of results) {
        if (result?.landed) await marks.answered(id)
        if (result) await recorded.landing(id, result, context)
      }
      return { results }
    },
    'POST /agents/{id}/sync': async ({ id }, { signal }, seen) => {
      const repos = reportsFor(seen, await syncing.sync(id, signal))
      return { repos, agent: await shown(seen, roster.card(await host.call('agent.conversation', { id }))) }
    },
    'POST /agents/{id}/discard': ({ id }, context) =>
      recorded.around('agent.discarded', id, context, () => fleet.discard(id, context.signal)),
    'GET /agents/archived': ({ limit, before }, _context, seen) => archive.list(seen, limit, before),
    'GET /agents/search': async (input, _context, seen) => {
      const found = await host.call('agent.search', input)
      if (!seen.reach) return found
      const ids = new Set((await within(seen, await conversations())).map(({ conversation }) => conversation.id))
      return { ...found, matches: found.matches.filter(({ id }) => ids.has(id)), scanned: ids.size }
    },
    'POST /agents/{id}/place': ({ id, text }, context) =>
      recorded.around('agent.placed', id, context, () =>
        host.call('agent.place', { id, text, by: context.caller.actor }),
      ),
    'POST /agents/{id}/rename': ({ id, title }, _context, seen) => shown(seen, marks.rename(id, title)),
    'POST /agents/{id}/seen': ({ id }, _context, seen) => shown(seen, marks.seen(id)),
    'POST /agents/seen': async ({ ids }, _context, seen) => {
      const { agents: all, ...rest } = await marks.seenAll(await meant(ids, seen))
      return { ...rest, agents: await cardsFor(seen, all) }
    },
    'POST /agents/{id}/auto-land': ({ id, autoLand }, context) =>
      recorded.around('agent.autoland', id, context, () => marks.autoLand(id, autoLand), { extra: { autoLand } }),
    'POST /agents/{id}/resume-after-outage': ({ id, resumeAfterOutage }, _context, seen) =>
      shown(seen, marks.resumeAfterOutage(id, resumeAfterOutage)),
    'POST /agents/{id}/request-land': ({ id }, context, seen) =>
      recorded.around('agent.land_requested', id, context, () => shown(seen, marks.requestLand(id, context.caller))),
    'GET /agents/{id}/queue': ({ id }) => host.call('agent.queue', { id }),
    'DELETE /agents/{id}/queue/{messageId}': input => host.call('agent.unqueue', input),
    'POST /agents/{id}/queue/order': input => host.call('agent.orderQueue', input),
    'POST /agents/archive': async ({ ids }, context, seen) => {
      const { moved, ...rest } = await archive.put(ids, seen)
      for (const { id } of moved) await recorded.of('agent.archived', id, context)
      return { ...rest, moved: await cardsFor(seen, moved) }
    },
    'POST /agents/unarchive': async ({ ids }, _context, seen) => {
      const { moved, ...rest } = await archive.takeBack(ids)
      return { ...rest, moved: await cardsFor(seen, moved) }
    },
    'POST /agents/purge': async ({ ids }, context) => {
      const result = await archive.purge(ids)
      if (result.removed.length > 0)
        await recorded.did('agent.purged', context, { extra: { count: result.removed.length, ids: result.removed } })
      return result
    },
    'agents.cards': ({ ids }) => roster.some(ids),
  }
  await host.serve(agents, withAccessView(host, handlers))
  host.on('conversation.gone', ({ conversationId: id, how }) => {
    standings.forget(id)
    notes
      .forget(id)
      .catch(error =>
        host.log.warn('a note on a conversation that is gone stays', { conversation: id, error: String(error) }),
      )
    host.emit('agent.removed', { agentId: id, how })
  })
  host.on('turn.settled', ({ conversationId: id, run, taken }) => {
    // A conversation may be gone by the time its end is heard of.
    void host
      .call('agent.conversation', { id })
      .then(state => (taken && state.conversation.lastRun === run ? notes.noteCommitted(id, run) : notes.commit(state)))
      .catch(() => {})
  })
  new Retention({ host, archive, now: Date.now }).begin()
  host.stopping(async () => {
    await notes.close()
    await standings.close()
  })
  host.boot('landings that were cut off', () => fleet.recover())
}
