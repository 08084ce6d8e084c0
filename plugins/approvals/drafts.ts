import { refuse, type Context, type Handlers } from '../../sdk/index.js'
import type { Approval, ApprovalInput, ApprovalsCalls, Draft } from './contract.js'

type DraftCalls = Pick<ApprovalsCalls, 'GET /drafts' | 'POST /drafts' | 'DELETE /drafts/{id}'>

/** What the paths of older clients stand on: the calls that do the same. */
export interface DraftDeps {
  readonly posts: (context: Context) => Promise<readonly Approval[]>
  /** The kind of an item; undefined: there is none. */
  readonly kindOf: (id: string) => Approval['kind'] | undefined
  /** Refuses callers who may not say yes. */
  readonly assertMayApprove: (context: Context) => void
  readonly propose: (input: ApprovalInput, context: Context) => Promise<Approval>
  readonly approve: (id: string, digest: string, context: Context) => Promise<Approval>
  readonly remove: (id: string, context: Context) => Promise<void>
}

/** The older paths of the queue: posts alone. */
export const draftCalls = (deps: DraftDeps): Handlers<DraftCalls> => {
  const assertPost = (id: string) =>
    deps.kindOf(id) === 'post' || refuse('not-found', `there is no post ${JSON.stringify(id)}: GET /drafts lists them`)
  return {
    'GET /drafts': async (_, context) => ({
      drafts: (await deps.posts(context)).flatMap(item => draftOf(item) ?? []),
    }),
    'POST /drafts': async ({ id, status, actsAs, scheduledAt, why, conversationId, ...post }, context) => {
      if (status === 'approved') deps.assertMayApprove(context)
      if (id !== undefined && deps.kindOf(id) !== undefined) assertPost(id)
      const saved = await deps.propose(
        {
          ...{ kind: 'post', post },
          ...(id !== undefined && { id }),
          ...(actsAs !== undefined && { actsAs }),
          ...(scheduledAt !== undefined && { scheduledAt }),
          ...(why !== undefined && { why }),
          ...(conversationId !== undefined && { conversationId }),
        },
        context,
      )
      return draftOf(status === 'approved' ? await deps.approve(saved.id, saved.digest, context) : saved)!
    },
    'DELETE /drafts/{id}': async ({ id }, context) => {
      assertPost(id)
      await deps.remove(id, context)
      return { ok: true }
    },
  }
}

const STATUSES: { readonly [status in Approval['status']]?: Draft['status'] } = {
  ...{ proposed: 'proposed', approved: 'approved', sending: 'posting', done: 'posted', failed: 'failed' },
}

/** A post as older clients know it; undefined: an action, or declined. */
const draftOf = (item: Approval): Draft | undefined => {
  const { post, id, createdAt, updatedAt, actsAs, scheduledAt, why, conversationId, url, attempts } = item
  const status = STATUSES[item.status]
  if (!post || !status) return undefined
  const problem = status === 'failed' ? attempts.at(-1)?.error : item.problem
  return {
    ...post,
    ...{ id, status, createdAt, updatedAt },
    ...(actsAs !== undefined && { actsAs }),
    ...(scheduledAt !== undefined && { scheduledAt }),
    ...(why !== undefined && { why }),
    ...(conversationId !== undefined && { conversationId }),
    ...(url !== undefined && { url }),
    ...(problem !== undefined && { problem }),
  }
}
