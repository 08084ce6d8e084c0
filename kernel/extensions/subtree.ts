import type { IncomingMessage } from 'node:http'
import { Refusal, refuse } from '../../sdk/refusal.js'
import { isStream } from '../../sdk/wire.js'
import type { Caller, Role, Scope } from '../../sdk/types.js'
import { admitted, type AdmissionDeps } from '../http/admission.js'
import { httpFactsOf } from '../http/answer.js'
import { drained } from '../../sdk/node/concurrency/drained.js'
import { PresenceBook } from '../http/presence.js'
import type { RequestContext, RequestStep } from '../http/request.js'
import type { KernelServices } from '../services.js'
import type { OpenStreams } from '../streams/open-streams.js'
import type { Subtree } from './subtree-access.js'
import type { RequestBodies } from './bodies.js'

/** What a subtree is served with. */
export interface SubtreeDeps extends AdmissionDeps {
  readonly kernel: KernelServices
  readonly streams: OpenStreams
  readonly bodies: RequestBodies
}

type Head = { kind: 'head'; status: number; headers: { [name: string]: string } }
type Piece = { kind: 'piece'; bytes: Uint8Array }

/** The least that a caller needs; the call may need more. */
const LEAST = { role: 'viewer', tokens: ['read', 'drive', 'land'] satisfies Scope[] } as const
const ROLES: { readonly [scope in Scope]: Role } = {
  read: 'viewer',
  editor: 'viewer',
  drive: 'collaborator',
  land: 'collaborator',
}
/** Headers that are for this daemon alone, or that claim something about the way here. */
const OURS = new RegExp(
  '^(?:x-sandbox-.*|authorization|proxy-authorization|cookie|x-forwarded-.*|forwarded|x-real-ip|host|connection|upgrade'
    + '|keep-alive|te|trailer|transfer-encoding|expect)$',
)
const FIRST_BYTE = 60_000

/** Serves all paths below a segment. */
export const serveSubtree =
  (deps: SubtreeDeps, group: string, { segment, call }: Subtree): RequestStep =>
  async ctx => {
    const { caller, leave } = admitted(deps, ctx, { id: call, role: LEAST.role, tokens: [...LEAST.tokens] })
    const presence = new PresenceBook(ctx.res)
    const { bodies } = deps
    try {
      await deps.kernel.boot.gate(group)
      const late = setTimeout(() => presence.ended.abort(lateAnswer()), FIRST_BYTE)
      const body = bodies.open(ctx.req)
      try {
        const input = requestOf(ctx, segment, caller, body)
        const context = { caller, trusted: false, http: httpFactsOf(ctx), signal: presence.ended.signal }
        const value = await deps.kernel.calls.answer(call, input, context)
        if (!isStream(value)) return refuse('failed', 'the sandbox failed to answer; its log says why')
        const end = deps.streams.enter(caller, presence.ended)
        try {
          await send(ctx, value as AsyncIterable<Head | Piece>, presence.ended.signal, () => {
            clearTimeout(late)
            leave()
          })
        } finally {
          end()
        }
      } finally {
        clearTimeout(late)
        bodies.close(body)
      }
    } finally {
      leave()
    }
  }

const lateAnswer = () => new Refusal('unavailable', 'no answer began within 60 s', { retryAfter: 1 })

const requestOf = (ctx: RequestContext, segment: string, caller: Caller, body: number | undefined): object => {
  const path = (ctx.req.url ?? '').split('?', 1)[0]!
  const query = new URLSearchParams(ctx.querystring)
  query.delete('token')
  query.delete('ticket')
  return {
    method: ctx.method,
    segments: path
      .slice(segment.length + 2)
      .split('/')
      .map(decodeURIComponent),
    query: query.toString(),
    headers: headersOf(ctx.req),
    role: caller.kind === 'token' && caller.scope ? ROLES[caller.scope] : caller.role,
    ...(body !== undefined && { body }),
  }
}

const headersOf = ({ headersDistinct }: IncomingMessage): { [name: string]: string } =>
  Object.fromEntries(
    Object.entries(headersDistinct).flatMap(([name, values]) =>
      OURS.test(name) || !values ? [] : [[name, values.join(', ')]],
    ),
  )

const send = async (
  { req, res, state: { reply } }: RequestContext,
  events: AsyncIterable<Head | Piece>,
  signal: AbortSignal,
  begun: () => void,
): Promise<void> => {
  for await (const event of events) {
    if (signal.aborted) return void res.destroy()
    if (event.kind === 'head') {
      begun()
      reply.lines.setAll(event.headers).write(res, event.status)
      if (!req.complete) res.shouldKeepAlive = false
      if (reply.head) return void res.end()
      res.flushHeaders()
    } else if (!res.write(event.bytes)) await drained(res, signal)
  }
  if (signal.aborted) res.destroy()
  else res.end()
}
