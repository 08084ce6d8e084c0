import { hash } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'
import { askOutside, webAddress, type OutboundReply } from '../../../sdk/node/network/outbound.js'
import { isOpenOnTheWay } from '../../../sdk/node/network/policy.js'
import type { EarlierPayment, PaidRequest, PaymentHeader, PaymentOutcome } from '../../capabilities/contract.js'
import type { ToolResult } from '../providers/adapter.js'
import type { PayInput } from './contract.js'
import { cut } from './content.js'
import { fetched, readable, refineRequest, outboundOf } from './fetch.js'
import { done, failed, tool, type ToolContext } from './tool.js'

const NOBODY = 'this payment needs a yes, and nobody watches this turn: raise a need and end your turn'
const PAYS = 402

/** Sends a request, and pays what the server asks for. */
export const pay = tool('Pay', {
  category: 'fetch',
  refine: (input, misfit) => {
    refineRequest(input, misfit)
    if (isOpenOnTheWay(webAddress(input.url)))
      misfit('url', 'https, for what is paid could be changed on the way', input.url)
  },
  describe: ({ url, method = 'GET' }) => {
    const { href } = webAddress(url)
    return { target: method === 'GET' ? href : `${method} ${href}`, url: href }
  },
  run: async (input, context) => {
    const { call, paying, person } = context
    // Asked before the server's own answer comes into the turn.
    const { cautious } = paying
    const before = await paying.earlier(call)
    if (before) return again(before, input, context)
    const request = requestFor(input)
    const first = await send(input, context)
    await paying.read(new URL(request.url).host)
    if (first.status !== PAYS) return fetched(first)
    const open = await paying.earlier(call, request)
    if (open) return again(open, input, context)
    const required = headerIn(first, 'payment-required')
    const quote = await paying.quote({
      request,
      ...(required !== undefined && { required }),
      body: first.body.toString('utf8'),
      ...(input.wallet !== undefined && { wallet: input.wallet }),
    })
    const { url, description, payTo, network, asset, assetName, amountUsd } = quote.terms
    if (quote.small && !cautious) return paid(await paying.sign(call, quote), input, context)
    if (!person.attends) return failed(NOBODY)
    const { spentTodayUsd, dailyCapUsd } = quote
    const offer = { url, payTo, network, asset, assetName, amountUsd, spentTodayUsd, dailyCapUsd, why: input.why }
    const reply = await person.ask(
      { kind: 'payment_offer', offer: { ...offer, ...(description !== undefined && { description }) } },
      { call, url, payTo, network, asset, amountUsd },
    )
    if (reply?.kind !== 'payment_offer') return failed('nobody answered, and nothing was paid')
    if (!reply.approve) return failed(`the person does not pay $${amountUsd} to ${payTo}`)
    return paid(await paying.sign(call, quote, reply.requestId), input, context)
  },
})

const requestFor = ({ url, method = 'GET', headers = {}, body = '' }: PayInput): PaidRequest => ({
  url: webAddress(url).href,
  method,
  digest: hash('sha256', JSON.stringify([Object.entries(headers).sort(), body])),
})

const send = async (input: PayInput, context: ToolContext, header?: PaymentHeader): Promise<OutboundReply> => {
  const request = await outboundOf(input, context)
  if (new URL(request.url).host !== webAddress(input.url).host)
    refuse('invalid', 'url: expected its host in plain words, for a person must see whom they pay')
  const headers = { ...request.headers, ...(header && { [header.name]: header.value }) }
  return askOutside({ ...request, headers, redirects: 0 })
}

const headerIn = ({ headers }: OutboundReply, name: string): string | undefined => {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}

/** Sends a payment with the request and keeps what came of it. */
const paid = async (
  header: PaymentHeader,
  input: PayInput,
  context: ToolContext,
  key?: string,
): Promise<ToolResult> => {
  const { call, paying, signal } = context
  let answer: OutboundReply | undefined
  let problem = 'the server did not say that it took the payment'
  try {
    answer = await send(input, context, header)
  } catch (error) {
    signal.throwIfAborted()
    problem = (error as Error).message
  }
  const settled = answer && (headerIn(answer, 'payment-response') ?? headerIn(answer, 'x-payment-response'))
  const outcome = await paying.settle(call, key, {
    ...(settled !== undefined && { settled }),
    status: answer?.status ?? 0,
    answer: answer ? readable(answer) : '',
  })
  if (outcome.outcome !== 'paid') return unpaid(outcome, problem)
  if (!answer || answer.status >= 400)
    return failed(`${receipt(outcome)}, but ${answer ? `the server answered ${answer.status}` : problem}`)
  const { text, content } = fetched(answer)
  return {
    ok: true,
    text: `${receipt(outcome)}\n${text}`,
    content: [{ type: 'text', text: receipt(outcome) }, ...content],
  }
}

/** Goes on with a payment that was signed before. */
const again = async (before: EarlierPayment, input: PayInput, context: ToolContext): Promise<ToolResult> => {
  if (before.outcome !== 'open') await context.paying.show(context.call, before)
  if (before.outcome === 'paid') return done(cut(`${receipt(before)}, by an earlier call\n${before.answer ?? ''}`))
  const late = 'it expired before the server took it'
  if (before.outcome === 'failed') return unpaid(before, late)
  if ((before.until ?? 0) <= Date.now()) {
    const found = await context.paying.settle(context.call, before.key, { status: 0, answer: '' })
    if (found.outcome === 'paid') return failed(`${receipt(found)}, but what the server answered is lost`)
    return unpaid(found, late)
  }
  return paid(before.header, input, context, before.key)
}

const receipt = ({ amountUsd, network, transaction }: PaymentOutcome): string =>
  `paid $${amountUsd} on ${network}${transaction === undefined ? '' : `, transaction ${transaction}`}`

const unpaid = ({ outcome, amountUsd, reason, until = 0 }: PaymentOutcome, problem: string): ToolResult => {
  const why = reason ?? problem
  if (outcome === 'failed') return failed(`$${amountUsd} was not paid: ${why}. Call again for a new payment`)
  if (until <= Date.now())
    return failed(`$${amountUsd} may be paid: the network does not say yet. Call again in a minute to ask it again`)
  return failed(
    `$${amountUsd} is not settled: ${why}. The server can take it until ${new Date(until).toISOString()}; `
      + 'until then an equal call sends the same payment again, and no second one',
  )
}
