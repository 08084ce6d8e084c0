import type { AgentConnection, AgentContext, PromptRequest, PromptResponse } from '@agentclientprotocol/sdk'
import { agent, ndJsonStream, PROTOCOL_VERSION, RequestError } from '@agentclientprotocol/sdk'
import { randomUUID } from 'node:crypto'
import { isAbsolute } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { CardReply, Frame } from '../../turn/frames/frames.js'
import { commandsOf, LOST, SHORTCUTS } from './adapter.js'
import { agentIo, updatesOf } from './agent-io.js'
import { interpret } from './interpreter.js'
import { outline, outside } from './outside.js'
import { literal } from './variables.js'
import type { ScriptCommand } from './verb.js'
import { verbs } from './verbs.js'
import { ignored } from '../../../../sdk/index.js'

const MODES = [
  { id: 'default', name: 'Work' },
  { id: 'plan', name: 'Plan' },
]

/** A command that no line of a script stands for. */
const added = (name: 'say' | 'plan', text: string): ScriptCommand => ({
  line: 1,
  name,
  verb: verbs.get(name)!,
  input: { text: literal(text) },
})

/** A script under way; it may have stopped at its plan. */
interface Running {
  /** Settles when the script has ended and the client knows. */
  readonly over: Promise<void>
  readonly stop: AbortController
  approve(reply: CardReply): void
}

/** One conversation with a client. */
class Session {
  readonly id: string
  readonly #cwd: string
  mode = 'default'
  #round = 0
  #costUsd = 0
  #stop: AbortController | undefined
  #planned: Running | undefined

  constructor(id: string, cwd: string) {
    this.id = id
    this.#cwd = cwd
  }

  cancel(): void {
    this.#stop?.abort()
  }

  async prompt({ prompt, _meta }: PromptRequest, client: AgentContext): Promise<PromptResponse> {
    if (this.#stop) throw new RequestError(-32600, 'this session is at work already')
    const words = prompt
      .flatMap(block =>
        block.type === 'text' && !block.annotations?.audience?.every(role => role === 'assistant') ? [block.text] : [],
      )
      .join('\n')
    const planned = words ? undefined : this.#planned
    if (!planned) this.#planned?.stop.abort()
    this.#planned = undefined
    const stop = planned?.stop ?? new AbortController()
    this.#stop = stop
    try {
      if (!planned) return await this.#script(words, meta(_meta), client, stop)
      planned.approve({ kind: 'plan', requestId: 'client', approve: true })
      await planned.over
      return { stopReason: stop.signal.aborted ? 'cancelled' : 'end_turn' }
    } finally {
      this.#stop = undefined
    }
  }

  async #script(
    words: string,
    { conversationId, run }: { conversationId: string; run: string },
    client: AgentContext,
    stop: AbortController,
  ): Promise<PromptResponse> {
    this.#round++
    await client.notify('session/update', {
      sessionId: this.id,
      update: updatesOf({ kind: 'commands', items: [...SHORTCUTS] }, this.#round, 0)[0]!,
    })
    const found = words ? commandsOf(words) : [added('say', LOST)]
    if ('message' in found) throw new RequestError(-32603, found.message, { code: found.code })
    const planning = this.mode === 'plan'
    const own = found.some(({ name }) => name === 'plan')
    // A script without a plan of its own is shown as a plan first, and runs when that is approved.
    const commands = planning && !own ? [added('plan', outline(found)), ...found] : found
    const [waits, approval] = [Promise.withResolvers<void>(), Promise.withResolvers<CardReply>()]
    const io = agentIo({
      id: this.id,
      cwd: this.#cwd,
      client,
      signal: stop.signal,
      round: this.#round,
      plan: async text => {
        await client.notify('session/update', {
          sessionId: this.id,
          update: updatesOf({ kind: 'delta', text }, this.#round, -1)[0]!,
        })
        waits.resolve()
        return approval.promise
      },
    })
    const script = interpret(
      outside(commands, planning),
      {
        conversationId,
        run,
        attempt: 1,
        prompt: words,
        words,
        attachments: [],
        mentions: [],
        harness: 'vendor-code',
        model: 'script',
        permissionMode: 'default',
        attended: true,
        depth: 0,
        helpers: { atOnce: 0, perTurn: 0, depth: 0 },
      },
      io,
    )
    const over = this.#told(script, client)
    const ended = await Promise.race([over.then(() => true), waits.promise.then(() => false)])
    if (ended) return { stopReason: stop.signal.aborted ? 'cancelled' : 'end_turn' }
    over.catch(ignored('the prompt was answered already'))
    this.#planned = { over, stop, approve: approval.resolve }
    return { stopReason: 'end_turn' }
  }

  /** Tells the client of a script's frames. */
  async #told(frames: AsyncIterable<Frame>, client: AgentContext): Promise<void> {
    let block = 0
    let context: { used: number; size: number } | undefined
    for await (const frame of frames) {
      if (frame.kind === 'text_end') block++
      if (frame.kind === 'error') throw new RequestError(-32603, frame.message, frame.code && { code: frame.code })
      if (frame.kind === 'context_usage') context = { used: frame.tokens, size: frame.contextWindow }
      const counted = frame.kind === 'usage' ? { ...frame, costUsd: (this.#costUsd += frame.costUsd ?? 0) } : frame
      for (const update of updatesOf(counted, this.#round, block, context))
        await client.notify('session/update', { sessionId: this.id, update })
    }
  }
}

const meta = (value: PromptRequest['_meta']): { conversationId: string; run: string } => {
  const [conversationId, run] = [value?.['sandbox/conversation'], value?.['sandbox/run']]
  return {
    conversationId: typeof conversationId === 'string' ? conversationId : 'c',
    run: typeof run === 'string' ? run : 'r',
  }
}

/** Speaks the Agent Client Protocol over two streams; scripts take the place of a model. */
export const serveScripts = (input: Readable, output: Writable): AgentConnection => {
  const sessions = new Map<string, Session>()
  const sessionOf = (id: string): Session => sessions.get(id) ?? fail(RequestError.sessionNotFound(id))
  const opened = (id: string, cwd: string) => {
    if (!isAbsolute(cwd)) fail(RequestError.invalidParams(undefined, 'cwd: expected an absolute path'))
    sessions.set(id, new Session(id, cwd))
    return { modes: { currentModeId: 'default', availableModes: MODES } }
  }
  return (
    agent({ name: 'sandbox script-agent' })
      .onRequest('initialize', () => ({
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'sandbox-script-agent', title: 'Script (offline)', version: '1' },
        agentCapabilities: { loadSession: true, promptCapabilities: { image: false } },
      }))
      .onRequest('authenticate', () => ({}))
      .onRequest('session/new', ({ params: { cwd } }) => {
        const sessionId = `script-${randomUUID()}`
        return { sessionId, ...opened(sessionId, cwd) }
      })
      // A script is whole in its prompt: a session of an earlier process has nothing more to remember.
      .onRequest('session/load', ({ params: { sessionId, cwd } }) =>
        /^script-[\w-]{1,64}$/.test(sessionId) ? opened(sessionId, cwd) : fail(RequestError.sessionNotFound(sessionId)),
      )
      .onRequest('session/set_mode', ({ params: { sessionId, modeId } }) => {
        const session = sessionOf(sessionId)
        session.mode =
          MODES.find(({ id }) => id === modeId)?.id
          ?? fail(RequestError.invalidParams(undefined, 'modeId: expected default or plan'))
        return {}
      })
      .onRequest('session/prompt', ({ params, client }) => sessionOf(params.sessionId).prompt(params, client))
      .onNotification('session/cancel', ({ params: { sessionId } }) => sessions.get(sessionId)?.cancel())
      .connect(ndJsonStream(Writable.toWeb(output), Readable.toWeb(input) as ReadableStream<Uint8Array>))
  )
}

const fail = (error: RequestError): never => {
  throw error
}
