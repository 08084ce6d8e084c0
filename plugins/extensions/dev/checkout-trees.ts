import { realpath } from 'node:fs/promises'
import { refuse, type Host } from '../../../sdk/index.js'
import { refuseUnknown } from '../../../sdk/node/access/conversation-reach.js'
import { copyRootOf } from '../../../sdk/node/repositories/main-repository.js'
import { gitStateOf, type GitState } from './checkout-state.js'

/** A tree with folders that extensions can run from: the workspace, or the private copy of a conversation. */
export interface CheckoutTree {
  readonly root: string
  /** The conversation whose private copy it is; absent: the workspace. */
  readonly conversation?: string
  /** What git knows of a folder of it; where git cannot say, nothing is committed. */
  state(path: string): Promise<GitState>
}

/** Whether two folders are the same one of the same tree. */
export const isSameFolder = (
  one: { readonly path: string; readonly conversation?: string } | undefined,
  other: { readonly path: string; readonly conversation?: string },
): boolean => one?.path === other.path && one.conversation === other.conversation

/** The trees that extensions can run from. */
export class CheckoutTrees {
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  /** The workspace, or the private copy of a conversation, which has to be there. */
  async of(conversation?: string): Promise<CheckoutTree> {
    const host = this.#host
    if (conversation === undefined) {
      const root = await realpath(host.place.workspace)
      return { root, state: path => this.#asked(path, () => gitStateOf(host, path)) }
    }
    if (!(await host.serves('agent.conversation'))) return refuseUnknown(conversation)
    const { branch } = (await host.call('agent.conversation', { id: conversation })).conversation
    if (branch === undefined)
      return refuse(
        'conflict',
        `expected a conversation with a private copy, found ${conversation}, which works in the workspace: leave out `
          + 'conversation',
      )
    const tree = await this.#copy(conversation, branch)
    return tree ?? refuse('conflict', `the private copy of ${conversation} is not there: its work is on ${branch}`)
  }

  /** The private copy of a conversation; undefined: it is not there. */
  async #copy(conversation: string, branch: string): Promise<CheckoutTree | undefined> {
    const host = this.#host
    const root = copyRootOf((await host.call('checkouts.repos', { id: conversation })).repos)
    if (root === undefined) return undefined
    const state = async (path: string): Promise<GitState> => {
      const below = path === '.' ? '' : path
      return {
        branch,
        uncommitted: (await host.call('checkouts.uncommitted', { id: conversation, path: below })).files,
      }
    }
    return { root, conversation, state: path => this.#asked(path, () => state(path)) }
  }

  /** The workspace, then each private copy that is there, that of the conversation that changed last first. */
  async *all(): AsyncGenerator<CheckoutTree> {
    const host = this.#host
    yield await this.of()
    if (!(await host.serves('agent.conversations'))) return
    const { conversations } = await host.call('agent.conversations')
    const latest = conversations
      .map(({ conversation }) => conversation)
      .sort((one, other) => other.updatedAt - one.updatedAt)
    for (const { id, branch } of latest) {
      // Conversations end while the others are read.
      const tree = branch === undefined ? undefined : await this.#copy(id, branch).catch(() => undefined)
      if (tree) yield tree
    }
  }

  async #asked(path: string, ask: () => Promise<GitState>): Promise<GitState> {
    try {
      return await ask()
    } catch (error) {
      this.#host.log.info('asking git for the state of a checkout failed', { path, error: String(error) })
      return { branch: '', uncommitted: 0 }
    }
  }
}
