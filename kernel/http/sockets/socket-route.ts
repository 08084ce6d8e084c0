import { frameOf, type Context } from '../../../sdk/contract.js'
import { explainInput } from '../../../sdk/explain.js'
import { refuse } from '../../../sdk/refusal.js'
import type { Logger } from '../../logs/log.js'
import type { CallAccess } from '../../manifest.js'
import { admitted, type AdmissionDeps } from '../admission.js'
import { httpFactsOf, type AnswerDeps } from '../answer.js'
import { answerKind } from '../answer-kind.js'
import { readQuery } from '../input.js'
import { askUpgrade, refuseMethod } from '../reply.js'
import type { RequestContext, RequestStep } from '../request.js'
import type { Upgrades } from './sockets.js'

export interface SocketRouteDeps extends AdmissionDeps, AnswerDeps {
  readonly upgrades: Upgrades
  readonly log: Logger
}

/** A route with the access of its manifest. */
export interface SocketRoute {
  readonly group: string
  readonly call: string
  readonly access: CallAccess
}

/** Serves calls that are WebSockets, refuses HEAD for streams and sockets, and passes every other request on. */
export const serveSocket = (deps: SocketRouteDeps, route: SocketRoute): RequestStep => {
  let kind: ReturnType<typeof answerKind> | undefined
  return (ctx, next) => {
    kind ??= answerKind(ctx.state.contract.schema(), route.call)
    if (ctx.state.reply.head && kind !== 'value')
      return Promise.resolve(refuseMethod(ctx.state.reply, `${ctx.path} is a ${kind}: it does not take HEAD`))
    return kind === 'socket' ? serve(deps, route, ctx) : next()
  }
}

const serve = async (
  deps: SocketRouteDeps,
  { group, call, access }: SocketRoute,
  ctx: RequestContext,
): Promise<void> => {
  const { kernel, streams, log } = deps
  const { contract, reply } = ctx.state
  const asked = deps.upgrades.of(ctx.req, ctx.res)
  if (!asked) return askUpgrade(reply, `${ctx.path} is a WebSocket: expected an upgrade request, found a plain GET`)
  const { caller, leave } = admitted(deps, ctx, access)
  const ended = new AbortController()
  const left = streams.hold(caller, ended)
  ctx.state.streamed = true
  try {
    if (!access.early) await kernel.boot.gate(group)
    const input = { ...readQuery(ctx.querystring, call, contract.schema()), ...ctx.params }
    await asked.serve({
      ended,
      answer: async frames => {
        const context: Context = { caller, trusted: false, http: httpFactsOf(ctx), signal: ended.signal, frames }
        const value = await kernel.calls.answer(call, input, context)
        leave()
        return value as AsyncIterable<unknown>
      },
      fits: frame => {
        const result = contract.request({ call: frameOf(call), input: frame })
        return result.success
          ? result.data.input
          : refuse('invalid', `a frame: ${explainInput(result.errors, contract).message}`)
      },
      failed: error => log.error({ err: error, path: ctx.path }, 'a socket failed'),
    })
  } finally {
    leave()
    left()
  }
}
