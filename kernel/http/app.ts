import type { RequestListener } from 'node:http'
import Koa from 'koa'
import { isRoute, type Bytes, type Contract } from '../../sdk/contract.js'
import type { Deployment } from '../config/deployment.js'
import { serveSubtree, type SubtreeDeps } from '../extensions/subtree.js'
import type { Group } from '../group.js'
import type { Logger } from '../logs/log.js'
import { admitCaller } from './admission.js'
import { AnyOrigin } from './any-origin.js'
import { isBytes, sendAnswer, type AnswerDeps } from './answer.js'
import { readInput } from './body.js'
import type { CallFigures } from './call-figures.js'
import { compose } from './compose.js'
import { checkOrigin } from './cors.js'
import { answerErrors } from './errors.js'
import type { Arrival } from './origin.js'
import { OwnOrigins } from './own-origins.js'
import { serveInTurn } from './pipelining.js'
import { servePublicPage, takePath } from './public-page.js'
import { sendBytes, sendValue } from './reply.js'
import type { RequestState, RequestStep } from './request.js'
import { Routes } from './routes.js'
import { serveSocket } from './sockets/socket-route.js'
import { Upgrades } from './sockets/sockets.js'

export interface AppOptions extends SubtreeDeps, AnswerDeps {
  readonly log: Logger
  /** Counts the answers. */
  readonly figures: CallFigures
  readonly http: NonNullable<Deployment['http']>
  /** The host at which public files and pages alone are answered. */
  readonly publicHost?: string | undefined
  /** The folder of uploaded files, which are deleted when their call is answered. */
  readonly uploads: string
}

/** Serves the call table over HTTP: one Koa application, in which every request takes the same steps in this order. */
export class App {
  readonly #koa = new Koa<RequestState>()
  readonly upgrades = new Upgrades()
  readonly #options: AppOptions
  readonly #routes = new Routes()
  readonly #anyOrigin = new AnyOrigin()
  readonly #ownOrigins: OwnOrigins

  constructor(options: AppOptions) {
    this.#options = options
    this.#ownOrigins = new OwnOrigins(options.kernel.calls)
    this.#koa.use(answerErrors(options.log))
    this.#koa.use(serveInTurn())
    this.#koa.use(
      checkOrigin(options.http, { anyOrigin: this.#anyOrigin, ownOrigins: this.#ownOrigins }, options.publicHost),
    )
    this.#koa.use(this.#routes.step)
  }

  /**
   * Serves a request. Koa's own `callback` spends a tenth of a request on listeners that report a failed socket to its
   * `onerror`, which has nothing to do here, since the steps answer errors. An error of that closes the connection.
   */
  callback(): RequestListener {
    const serve = compose(this.#koa.middleware)
    return (req, res) => {
      const ctx = this.#koa.createContext(req, res)
      const began = performance.now()
      void serve(ctx, async () => {})
        .catch(() => res.destroy())
        .then(() => {
          const { call, streamed = false } = ctx.state
          if (call !== undefined) this.#options.figures.took(call, res.statusCode, performance.now() - began, streamed)
        })
    }
  }

  /** Adds every route of a group. */
  add(group: Pick<Group, 'manifest' | 'contract'>): void {
    const { name, routes, subtrees = [] } = group.manifest
    const contract = readContract(group)
    const deps = { ...this.#options, upgrades: this.upgrades }
    for (const subtree of subtrees) this.#routes.subtree(subtree.segment, serveSubtree(deps, name, subtree))
    for (const [call, access] of Object.entries(routes)) {
      if (!isRoute(call)) continue
      const [method = '', path = ''] = call.split(' ')
      if (access.ticket?.lastsSeconds) deps.auth.ticketsLast(access.ticket.for, access.ticket.lastsSeconds * 1000)
      if ('open' in access && access.anyOrigin) this.#anyOrigin.add(path, access.anyOrigin.headers)
      if ('open' in access && access.ownOrigins) this.#ownOrigins.add(call, path, access.ownOrigins.by)
      const isPage = 'open' in access && access.publicPage === true
      const steps = [
        named(call, contract),
        ...(method === 'GET' ? [serveSocket(deps, { group: name, call, access })] : []),
        admitCaller(deps, access),
        ...(access.early ? [] : [this.#gate(name, method === 'GET')]),
        isPage ? takePath : readInput(call, access, deps.uploads),
        sendAnswer(deps, call, access),
      ]
      if (isPage) this.#routes.publicPage(path, servePublicPage(path, compose(steps)))
      else this.#routes.add(method, path, steps)
    }
  }

  /** Adds a route of the kernel itself, which needs no credential. */
  own(path: string, answer: (arrival: Arrival) => Promise<Bytes | object> | Bytes | object): void {
    const step: RequestStep = async ctx => {
      const { arrival, reply } = ctx.state
      const value = await answer(arrival)
      return isBytes(value) ? sendBytes(reply, value, ctx.req.headers['if-none-match']) : sendValue(reply, value)
    }
    this.#routes.add('GET', path, [step])
  }

  /** Waits until the boot steps are done, which a read need not; refuses if one of this group's steps failed. */
  #gate(group: string, reads: boolean): RequestStep {
    const { boot } = this.#options.kernel
    return (_ctx, next) => (boot.isOpen(group, reads) ? next() : boot.gate(group).then(next))
  }
}

/** Notes which call a request makes. */
const named =
  (call: string, step: RequestStep): RequestStep =>
  (ctx, next) => {
    ctx.state.call = call
    return step(ctx, next)
  }

/** Loads the contract of the group that serves the route, without starting the group. */
const readContract = (group: Pick<Group, 'contract'>): RequestStep => {
  let contract: Contract | undefined
  return (ctx, next) => {
    if (!contract) return group.contract().then(read => ((ctx.state.contract = contract = read), next()))
    ctx.state.contract = contract
    return next()
  }
}
