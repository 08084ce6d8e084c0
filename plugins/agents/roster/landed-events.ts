import type { Context, Host } from '../../../sdk/index.js'
import { record, type Happened } from '../../../sdk/node/record/record.js'
import type { LandResult } from '../contract.js'

type Subject = Pick<Happened, 'conversationId' | 'title'>

/** Records landings and discards in the activity record. */
export class LandedEvents {
  readonly #host: Pick<Host, 'call' | 'serves' | 'log'>

  constructor(host: Pick<Host, 'call' | 'serves' | 'log'>) {
    this.#host = host
  }

  discard(subject: Subject, context: Context): Promise<void> {
    return this.#did('agent.discarded', context, subject)
  }

  /** Records the outcome of a landing, except in mode `measure`. */
  async landing(subject: Subject, { landed, conflicts }: LandResult, context: Context): Promise<void> {
    if (landed) await this.#did('agent.landed', context, subject)
    else if (conflicts?.length) {
      await this.#did('agent.conflict', context, {
        ...subject,
        outcome: 'error',
        extra: { repos: conflicts.map(({ repo, paths }) => ({ repo, paths: paths.length })) },
      })
    }
  }

  #did(type: string, context: Context, facts: Partial<Happened>): Promise<void> {
    return record(this.#host, { type, audience: 'viewer', outcome: 'ok', ...facts }, context)
  }
}
