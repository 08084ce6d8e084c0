import { Refusal, type Host } from '../../../sdk/index.js'
import { ownListeners } from '../../../sdk/node/network/own-listeners.js'
import type { AccountLease } from '../../accounts/contract.js'
import type { TranslatorRequests } from '../contract.js'
import type { DaemonNews, LeasedRequest, LinkCall, LinkInput, LinkOutput, ProcessNews } from '../link/messages.js'
import type { RunGrant, RunGrants } from './grants.js'
import { SERVER } from './table.js'

type Link = Pick<Host, 'call' | 'serves' | 'emit' | 'log'>
type News<N extends ProcessNews['news']> = Extract<ProcessNews, { news: N }>

const STATUSES: { readonly [reason: string]: number } = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 403,
  'too-many': 429,
  dependency: 502,
  unavailable: 503,
}

/** Serves the translator's process: lends credentials for one request, asks the shield, and counts. */
export class Leasing {
  readonly #host: Link
  readonly #grants: RunGrants
  readonly #held = new Set<string>()
  requests: TranslatorRequests = { total: 0, failed: 0, retried: 0, inFlight: 0 }

  constructor(host: Link, grants: RunGrants) {
    this.#host = host
    this.#grants = grants
  }

  /** Forgets what a process that ended had borrowed. */
  reset(): void {
    for (const lease of this.#held) this.#giveBack(lease)
    this.requests = { total: 0, failed: 0, retried: 0, inFlight: 0 }
  }

  hear(news: ProcessNews, send: (news: DaemonNews) => void): void {
    switch (news.news) {
      case 'ask':
        return void this.#answer(news, send)
      case 'begun':
        this.requests = { ...this.requests, total: this.requests.total + 1, inFlight: this.requests.inFlight + 1 }
        return
      case 'over':
        return this.#over(news)
      case 'restored':
        return this.#restored(news)
    }
  }

  async #answer({ id, call, input }: News<'ask'>, send: (news: DaemonNews) => void): Promise<void> {
    try {
      const output = await this.#call(call, input as never)
      send({ news: 'answer', id, output })
    } catch (error) {
      const { reason, message, detail } = Refusal.from(error)
      const { retryAfter } = detail
      const refusal = { status: STATUSES[reason] ?? 500, message, ...(retryAfter !== undefined && { retryAfter }) }
      send({ news: 'refusal', id, refusal })
    }
  }

  #call<C extends LinkCall>(call: C, input: LinkInput<C>): Promise<LinkOutput<C>> {
    const calls: { [N in LinkCall]: (input: LinkInput<N>) => Promise<LinkOutput<N>> } = {
      lease: asked => this.#lease(asked),
      renew: asked => this.#renew(asked),
      refused: asked => this.#refused(asked),
      mask: asked => this.#mask(asked),
    }
    return calls[call](input)
  }

  #grant(id: string): RunGrant {
    const grant = this.#grants.get(id)
    if (!grant) throw new Refusal('unauthenticated', 'the turn of this bearer has ended')
    return grant
  }

  async #lease({ grant: id, model, besides }: LinkInput<'lease'>): Promise<LeasedRequest> {
    const grant = this.#grant(id)
    const { provider, account } = grant
    if (provider.startsWith(SERVER)) {
      const target = await this.#host.call('endpoints.target', { id: provider.slice(SERVER.length) })
      if (target.problem !== undefined) throw new Refusal('unavailable', `${target.label}: ${target.problem}`)
      const masks = await this.#masks(grant, undefined, target.local)
      return { headers: target.headers, renewable: false, masks, listeners: ownListeners() }
    }
    const asked = { provider, model, besides: [...besides], ...(account !== undefined && { account }) }
    const lent = await this.#host.call('accounts.lease', asked)
    this.#held.add(lent.lease)
    return this.#lent(grant, lent)
  }

  async #renew({ grant: id, lease, account, refused }: LinkInput<'renew'>): Promise<LeasedRequest> {
    const grant = this.#grant(id)
    const { provider } = grant
    return this.#lent(grant, await this.#host.call('accounts.renew', { lease, provider, account, refused }))
  }

  async #lent(grant: RunGrant, { lease, account, headers, kind }: AccountLease): Promise<LeasedRequest> {
    const masks = await this.#masks(grant, account, false)
    return { lease, account, headers, renewable: kind === 'bearer', masks, listeners: ownListeners() }
  }

  /** Whether a request passes the shield here: not where the loop asked it before. */
  async #masks({ provider, shielded }: RunGrant, account: string | undefined, local: boolean): Promise<boolean> {
    if (shielded || !(await this.#host.serves('shield.outbound'))) return false
    const about = { provider, local, ...(account !== undefined && { account }) }
    return (await this.#host.call('shield.trustOf', about)).enabled
  }

  async #refused({ grant: id, lease, account, status, message, resetsAt }: LinkInput<'refused'>) {
    const { provider } = this.#grant(id)
    this.#giveBack(lease)
    const kind = status === 429 ? 'limit' : status === 402 ? 'entitlement' : 'auth'
    const when = resetsAt !== undefined && { resetsAt }
    this.#host.emit('provider.refused', { provider, account, kind, message: message.slice(0, 400), ...when })
    return {}
  }

  async #mask({ grant: id, account, texts, binary }: LinkInput<'mask'>): Promise<LinkOutput<'mask'>> {
    const { provider, conversationId } = this.#grant(id)
    const local =
      provider.startsWith(SERVER)
      && (await this.#host.call('endpoints.target', { id: provider.slice(SERVER.length) })).local
    const about = {
      ...{ provider, local },
      ...(conversationId !== undefined && { conversationId }),
      ...(account !== undefined && { account }),
    }
    const answer = await this.#host.call('shield.outbound', { ...about, covered: true, texts: [...texts], binary })
    if (answer.verdict === 'refused')
      throw new Refusal('forbidden', answer.message ?? 'the privacy shield refuses this request')
    const { texts: masked, tokens } = answer
    return answer.verdict === 'masked' && masked ? { texts: masked, tokens: tokens ?? [] } : {}
  }

  #over({ grant: id, failed, retried, lease, account, tokens, headers }: News<'over'>): void {
    const { total, failed: before, retried: again, inFlight } = this.requests
    this.requests = {
      total,
      failed: before + (failed ? 1 : 0),
      retried: again + retried,
      inFlight: Math.max(0, inFlight - 1),
    }
    if (lease !== undefined) this.#giveBack(lease)
    if (tokens) this.#grants.count(id, tokens)
    const provider = this.#grants.get(id)?.provider
    if (provider === undefined || account === undefined || !headers) return
    if (!failed) this.#host.emit('provider.answered', { provider, account })
    this.#host
      .call('limits.heard', { provider, account, headers: { ...headers } })
      .catch(error => this.#host.log.warn('reading limits failed', { provider, error: String(error) }))
  }

  #restored({ grant: id, restored, unrestored }: News<'restored'>): void {
    const conversationId = this.#grants.get(id)?.conversationId
    if (conversationId === undefined || Object.keys(restored).length + unrestored === 0) return
    this.#host
      .call('shield.inbound', { conversationId, restored: { ...restored }, unrestored })
      .catch(error => this.#host.log.warn('counting restored values failed', { error: String(error) }))
  }

  #giveBack(lease: string): void {
    this.#held.delete(lease)
    this.#host
      .call('accounts.release', { lease })
      .catch(error => this.#host.log.warn('giving a credential back failed', { error: String(error) }))
  }
}
