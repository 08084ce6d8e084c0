import type { Host } from '../../../../sdk/index.js'
import type { NoticeFrame } from '../../turn/frames/frames.js'
import { ServerFault } from './faults.js'
import type { ModelCall, ServerModel } from '../../../../sdk/node/models/model-call.js'
import { restoredAnswer, type RestoredCounts } from '../../../../sdk/node/models/restored-answer.js'
import { requestTexts, withRequestTexts } from '../../../../sdk/node/models/request-texts.js'
import { ignored } from '../../../../sdk/index.js'

/** Where the requests of a shielded model go. */
export interface ShieldedProvider {
  /** Left out: a single question. */
  readonly conversationId?: string
  readonly provider: string
  readonly account?: string | undefined
  readonly local: boolean
}

const NO_ANSWER = 'the privacy shield does not answer, so nothing was sent'

type Link = Pick<Host, 'call' | 'serves'>
type Streamed = Awaited<ReturnType<ServerModel['doStream']>>

/** Puts the privacy shield between a turn and its model: masks what leaves, restores what comes back. */
export class ModelShield {
  readonly #host: Link
  readonly #about: ShieldedProvider
  #counts: { [kind: string]: number } = {}

  constructor(host: Link, about: ShieldedProvider) {
    this.#host = host
    this.#about = about
  }

  /** The model, asked through the shield. */
  over(model: ServerModel): ServerModel {
    return { doStream: call => this.#stream(model, call) }
  }

  /** What was masked in the turn, once. */
  *notice(): Generator<NoticeFrame> {
    const counts = this.#counts
    this.#counts = {}
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
    if (total === 0) return
    const text = `the privacy shield masked ${total} ${total === 1 ? 'value' : 'values'} in what was sent`
    yield { kind: 'notice', level: 'info', text, source: 'shield', counts }
  }

  async #stream(model: ServerModel, call: ModelCall): Promise<Streamed> {
    if (!(await this.#host.serves('shield.outbound'))) return model.doStream(call)
    const { conversationId, provider, account, local } = this.#about
    const to = { provider, local, ...(account !== undefined && { account }) }
    const silent = (): never => {
      throw new ServerFault(NO_ANSWER)
    }
    // The texts of a whole conversation are not collected for a shield that is off.
    const { enabled } = await this.#host.call('shield.trustOf', to).catch(silent)
    if (!enabled) return model.doStream(call)
    const about = { ...to, ...(conversationId !== undefined && { conversationId }) }
    const asked = { ...about, covered: true, ...requestTexts(call) }
    const answer = await this.#host.call('shield.outbound', asked).catch(silent)
    if (answer.verdict === 'refused') throw new ServerFault(answer.message ?? 'the privacy shield refuses this request')
    if (answer.verdict === 'sent' || !answer.texts) return model.doStream(call)
    for (const [kind, count] of Object.entries(answer.counts ?? {}))
      this.#counts[kind] = Math.max(this.#counts[kind] ?? 0, count)
    const streamed = await model.doStream(withRequestTexts(call, answer.texts))
    const values = new Map(answer.tokens?.map(({ token, value }) => [token, value]))
    return { ...streamed, stream: streamed.stream.pipeThrough(restoredAnswer(values, counts => this.#report(counts))) }
  }

  #report({ restored, unrestored }: RestoredCounts): void {
    const { conversationId } = this.#about
    if (conversationId === undefined || Object.keys(restored).length + unrestored === 0) return
    void this.#host
      .call('shield.inbound', { conversationId, restored: { ...restored }, unrestored })
      .catch(ignored('the answer is whole without these counts'))
  }
}

/** Texts that belong to no conversation, as the shield lets them leave. */
export const shieldedTexts = async (
  host: Link,
  { provider, account, local }: Omit<ShieldedProvider, 'conversationId'>,
  texts: readonly string[],
): Promise<readonly string[]> => {
  if (!(await host.serves('shield.outbound'))) return texts
  const to = { provider, local, ...(account !== undefined && { account }) }
  const answer = await host
    .call('shield.outbound', { ...to, covered: true, texts: [...texts], binary: false })
    .catch(() => {
      throw new ServerFault(NO_ANSWER)
    })
  if (answer.verdict === 'refused') throw new ServerFault(answer.message ?? 'the privacy shield refuses this request')
  return answer.verdict === 'masked' && answer.texts ? answer.texts : texts
}

/** Why a program whose requests do not pass the shield must not run; undefined: it may. */
export const closedByShield = async (
  host: Link,
  provider: string,
  conversationId: string,
): Promise<string | undefined> => {
  if (!(await host.serves('shield.outbound'))) return undefined
  const asked = { conversationId, provider, local: false, covered: false, texts: [], binary: false }
  try {
    const { verdict, message } = await host.call('shield.outbound', asked)
    return verdict === 'refused' ? (message ?? 'the privacy shield refuses this provider') : undefined
  } catch {
    return NO_ANSWER
  }
}
