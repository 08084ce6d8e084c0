import type { Context, Host } from '../../../sdk/index.js'
import { record, type Happened } from '../../../sdk/node/record/record.js'
import type { LandResult } from '../contract.js'

type Facts = Omit<Happened, 'type'>

/** Writes down what somebody did with conversations. */
export class LandedEvents {
  readonly #host: Pick<Host, 'call' | 'serves' | 'log'>

  constructor(host: Pick<Host, 'call' | 'serves' | 'log'>) {
    this.#host = host
  }

  /** Done by the caller of a context. */
  did(type: string, context: Context, facts: Facts = {}): Promise<void> {
    return record(this.#host, { type, audience: 'viewer', outcome: 'ok', ...facts }, context)
  }

  /** The same of one conversation, under the title it has. */
  async of(type: string, conversationId: string, context: Context, facts: Facts = {}): Promise<void> {
    await this.did(type, context, { ...(await this.#named(conversationId)), ...facts })
  }

  /** The same of what is done now, under the title the conversation has before it. */
  async around<T>(
    type: string,
    conversationId: string,
    context: Context,
    work: () => Promise<T>,
    facts: Facts = {},
  ): Promise<T> {
    const named = await this.#named(conversationId)
    const result = await work()
    await this.did(type, context, { ...named, ...facts })
    return result
  }

  async #named(conversationId: string): Promise<Pick<Facts, 'conversationId' | 'title'>> {
    const title = await this.#host.call('agent.conversation', { id: conversationId }).then(
      ({ conversation }) => conversation.title,
      () => undefined,
    )
    return { conversationId, ...(title !== undefined && { title }) }
  }

  /** What became of a landing; one that only measured did nothing. */
  async landing(conversationId: string, { landed, conflicts }: LandResult, context: Context): Promise<void> {
    if (landed) await this.of('agent.landed', conversationId, context)
    else if (conflicts?.length) {
      await this.of('agent.conflict', conversationId, context, {
        outcome: 'error',
        extra: { repos: conflicts.map(({ repo, paths }) => ({ repo, paths: paths.length })) },
      })
    }
  }
}
