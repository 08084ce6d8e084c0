import { randomUUID } from 'node:crypto'
import { refuse, Refusal, type Caller, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { reachFor, accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { accessToConversation, ofCaller } from '../../sdk/node/access/conversation-reach.js'
import { limitsOf, refuseReading } from '../../sdk/node/access/access-view.js'
import type { PathTree } from '../../sdk/node/files/open-path.js'
import type { Access } from '../../sdk/reach.js'
import { assertNoValues, valueMasker } from '../../sdk/node/access/value-masker.js'
import type { Approval, ApprovalInput, ApprovalsCalls, ApprovalStatus } from './contract.js'
import { draftCalls } from './drafts.js'
import { executorsNow } from './executors/executors.js'
import { publishedPath } from './executors/outbox.js'
import type { MediaCopies } from './media.js'
import type { ApprovalQueue } from './queue.js'
import { assertWhole, digestOfItem, movesMoney, type StoredApproval } from './stored-approval.js'

const STATUSES = new Set<string>([
  ...(['proposed', 'approved', 'sending', 'done', 'failed', 'declined'] satisfies ApprovalStatus[]),
])
const LISTED = 100
/** Copies of their files stay until each is decided, and a script proposes many in a minute. */
const MOST_OF_CONVERSATION = 50
const MOST_LISTED = 200

/** Who files an item. */
interface Proposer {
  readonly actor: string
  readonly owner: string
  readonly replacesAll: boolean
}

/** What the calls stand on. */
export interface ApprovalCallDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place'>
  readonly queue: ApprovalQueue
  readonly copies: MediaCopies
}

/** A conversation with its live turn; undefined: there is none. */
export const liveConversation = (host: Pick<Host, 'call'>, id: string) =>
  host.call('agent.conversation', { id }).catch((error: unknown) => {
    if (Refusal.from(error).reason === 'not-found') return undefined
    throw error
  })

/** Who an item belongs to: a person, a token or a program. */
const ownerOf = ({ kind, actor, email, tokenId }: Caller): string =>
  kind === 'session' ? `person:${email ?? actor}` : kind === 'token' ? `token:${tokenId ?? actor}` : actor

const isMaintainer = ({ kind, role }: Caller): boolean =>
  kind === 'session' && (role === 'maintainer' || role === 'owner')

/** Whether a caller may only read, and so sees no arguments of actions. */
const onlyReads = ({ kind, role, scope }: Caller): boolean => (kind === 'token' ? scope === 'read' : role === 'viewer')

/** What a caller may do with items, each conversation looked up once. */
const accessOf = (host: ApprovalCallDeps['host'], caller: Caller) => {
  const known = new Map<string, Promise<Access | undefined>>()
  const look = async (id: string): Promise<Access | undefined> => {
    const [state, seen] = await Promise.all([liveConversation(host, id), accessViewFor(host, caller)])
    return state && accessToConversation(seen, state.conversation)
  }
  return async ({ conversationId, owner }: { conversationId?: string; owner?: string }) => {
    if (limitsOf(caller) === undefined) return 'work'
    if (conversationId === undefined) return owner === undefined || owner === ownerOf(caller) ? 'work' : undefined
    const access = known.get(conversationId) ?? look(conversationId)
    known.set(conversationId, access)
    return access
  }
}

/** Serves the calls of the group. */
export const approvalsCalls = ({ host, queue, copies }: ApprovalCallDeps): Handlers<ApprovalsCalls> => {
  const shown = async (item: StoredApproval, caller?: Caller, find = executorsNow(host, copies)): Promise<Approval> => {
    const { owner: _owner, folder: _folder, media: _media, tries: _tries, telling: _telling, action, ...rest } = item
    const { args: _args, ...brief } = action ?? { args: {} }
    const found = await find(item)
    return {
      ...rest,
      ...(action && { action: caller && onlyReads(caller) ? (brief as Omit<typeof action, 'args'>) : action }),
      ...('problem' in found ? { via: 'nobody', problem: found.problem } : { via: found.turn ? 'turn' : 'executor' }),
      ownerOnly: movesMoney(item),
    }
  }

  /** One at a time of each owner: two at once would both be the last that fits. */
  const filing = new KeyedMutex()

  /** Refuses a conversation whose agents and commands have proposed too much that nobody decided yet. */
  const assertRoom = (owner: string): void => {
    if (!owner.startsWith('conversation:')) return
    const open = queue.all.filter(item => item.owner === owner && item.status === 'proposed').length
    if (open >= MOST_OF_CONVERSATION)
      refuse(
        'too-many',
        `${open} proposals of this conversation wait for a decision: wait until some are decided, or replace one by `
          + 'its id',
      )
  }

  const file = (
    input: ApprovalInput,
    by: Proposer,
    tree: Omit<PathTree, 'readsGit'>,
    context?: Context,
  ): Promise<StoredApproval> => filing.with(by.owner, () => filed(input, by, tree, context), context?.signal)

  const filed = async (
    { id = `a-${randomUUID().replaceAll('-', '').slice(0, 20)}`, ...input }: ApprovalInput,
    by: Proposer,
    tree: Omit<PathTree, 'readsGit'>,
    context?: Context,
  ): Promise<StoredApproval> => {
    assertWhole(input)
    await assertNoValues(host, { post: input.post, action: input.action, why: input.why })
    const assertOwn = ({ owner }: StoredApproval) =>
      by.replacesAll || owner === by.owner || refuse('forbidden', `${id} is somebody else's: propose your own`)
    const before = queue.find(id)
    if (before) assertOwn(before)
    else assertRoom(by.owner)
    const paths = input.post?.media ?? []
    const publishes = input.action && publishedPath(input.action)
    const copy =
      publishes !== undefined
        ? await copies.copyTree(publishes, tree)
        : paths.length > 0
          ? await copies.copy(paths, tree)
          : undefined
    const digest = digestOfItem(input, copy?.media)
    try {
      return await queue.propose(
        { ...input, id, digest, proposedBy: by.actor, owner: by.owner, ...copy },
        assertOwn,
        context,
      )
    } catch (error) {
      await copies.remove(copy?.folder)
      throw error
    }
  }

  const posts = async ({ caller }: Context): Promise<Approval[]> => {
    const access = accessOf(host, caller)
    const find = executorsNow(host, copies)
    const found: StoredApproval[] = []
    // What carries an action out may be asked of a server.
    for (const item of queue.all) if (item.kind === 'post' && (await access(item)) !== undefined) found.push(item)
    return Promise.all(found.map(item => shown(item, caller, find)))
  }

  /** Where the files lie that a caller names: a turn's are those of its own tree. */
  const treeFor = async (caller: Caller): Promise<Omit<PathTree, 'readsGit'>> => {
    const { conversationId } = caller
    if (conversationId === undefined) return { root: host.place.workspace, reach: await reachFor(host, caller) }
    const { root, folders } = await host.call('agent.tree', { conversationId })
    return { root, reach: folders }
  }

  const propose = async (asked: ApprovalInput, context: Context): Promise<Approval> => {
    const { caller } = context
    const conversationId = ofCaller(caller, asked.conversationId)
    const input = { ...asked, ...(conversationId !== undefined && { conversationId }) }
    if (conversationId !== undefined) {
      const access =
        (await liveConversation(host, conversationId)) && (await accessOf(host, caller)({ conversationId }))
      if (!access) refuse('unprocessable', `there is no conversation ${JSON.stringify(conversationId)}`)
      if (access === 'read') refuseReading(conversationId)
    }
    const by = { actor: caller.actor, owner: ownerOf(caller), replacesAll: isMaintainer(caller) }
    return shown(await file(input, by, await treeFor(caller), context), caller)
  }

  return {
    ...draftCalls({
      posts,
      propose,
      kindOf: id => queue.find(id)?.kind,
      assertMayApprove: ({ caller }) =>
        isMaintainer(caller) || refuse('forbidden', 'status: expected proposed, because only a maintainer says yes'),
      approve: async (id, digest, context) => shown(await queue.approve(id, { digest }, context), context.caller),
      remove: (id, context) => queue.remove(id, context),
    }),
    'GET /approvals': async ({ status, kind, conversationId, limit = LISTED, before = Infinity }, { caller }) => {
      const wanted = status === undefined ? STATUSES : new Set(status.split(',').map(each => each.trim()))
      for (const each of wanted)
        if (!STATUSES.has(each))
          refuse('invalid', `status: expected some of ${[...STATUSES].join(', ')}, found ${JSON.stringify(each)}`)
      const access = accessOf(host, caller)
      const found: StoredApproval[] = []
      const counts: { [status: string]: number } = {}
      for (const item of queue.all) {
        if ((await access(item)) === undefined) continue
        counts[item.status] = (counts[item.status] ?? 0) + 1
        const fits =
          wanted.has(item.status)
          && item.createdAt < before
          && (conversationId === undefined || item.conversationId === conversationId)
          && (kind === undefined || item.kind === kind)
        if (fits && found.length < Math.min(limit, MOST_LISTED)) found.push(item)
      }
      const find = executorsNow(host, copies)
      return { approvals: await Promise.all(found.map(item => shown(item, caller, find))), counts }
    },
    'POST /approvals': propose,
    'POST /approvals/{id}/approve': async ({ id, ...yes }, context) => {
      if (movesMoney(queue.get(id)) && context.caller.role !== 'owner')
        refuse('forbidden', 'this moves money: only the owner may say yes')
      return shown(await queue.approve(id, yes, context), context.caller)
    },
    'POST /approvals/{id}/recall': async ({ id }, context) => shown(await queue.recall(id, context), context.caller),
    'POST /approvals/{id}/decline': async ({ id, reason }, context) =>
      shown(await queue.decline(id, reason && (await valueMasker(host)).mask(reason), context), context.caller),
    'DELETE /approvals/{id}': async ({ id }, context) => {
      await queue.remove(id, context)
      return { ok: true }
    },
    'approvals.file': async ({ run: _run, files = { root: host.place.workspace, folders: [] }, ...input }) => {
      const actor = `conversation:${input.conversationId}`
      return shown(
        await file(input, { actor, owner: actor, replacesAll: false }, { root: files.root, reach: files.folders }),
      )
    },
    'approvals.counts': () => ({ proposed: queue.counts }),
  }
}
