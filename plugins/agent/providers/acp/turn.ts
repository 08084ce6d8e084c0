import type { ContentBlock } from '@agentclientprotocol/sdk'
import type { TurnFailure, TurnIo, TurnRequest } from '../adapter.js'
import type { ErrorCode, Frame, ProviderId } from '../../turn/frames.js'
import { TurnClient } from './client.js'
import { UNAUTHENTICATED } from './declined.js'
import { fieldsOf, choiceField } from './outside.js'
import { Crashed, type AgentPeer } from './peer.js'
import type { Peers } from './peers.js'
import { absence, located, type AgentProgram } from './program.js'
import { approval, opening } from './prompt.js'

const MOST_MESSAGE = 2000
/** What a program may say of its own refusal. */
const CODES = ['script-syntax', 'unknown-command', 'model-invalid', 'context-full'] as const satisfies ErrorCode[]

const STOPS: { readonly [reason: string]: string } = {
  cancelled: 'stopped the turn by itself',
  refusal: 'refuses to go on with this',
  max_tokens: 'came to the most tokens it may use in a turn',
  max_turn_requests: 'came to the most requests it may make in a turn',
}

/** A turn that ends as failed. */
class Failed extends Error {
  readonly failure: TurnFailure
  constructor(failure: TurnFailure) {
    super(failure.message)
    this.failure = failure
  }
}

/** Runs turns of a provider in its agent program. */
export type AcpRun = (
  provider: ProviderId,
  program: AgentProgram,
  request: TurnRequest,
  io: TurnIo,
) => AsyncIterable<Frame>

/** Runs turns in agent programs, which `peers` keeps for the next one. */
export const acpOn = (peers: Peers): AcpRun =>
  async function* (provider, program, request, io) {
    const path = await located(program)
    if (path === undefined) return yield { kind: 'error', code: 'harness-missing', message: absence(program) }
    const {
      command: [, ...args],
      env,
      needs,
    } = program
    const client = new TurnClient(
      io,
      await io.walled({ program: path, args, ...(env && { env }), ...(needs && { needs }) }),
    )
    const turn = new VendorTurn(provider, program, request, io, client, peers)
    const work = turn.run().finally(() => client.frames.end())
    work.catch(() => {})
    yield* client.frames
    await work
  }

class VendorTurn {
  readonly #provider: ProviderId
  readonly #program: AgentProgram
  readonly #request: TurnRequest
  readonly #io: TurnIo
  readonly #client: TurnClient
  readonly #peers: Peers

  constructor(
    provider: ProviderId,
    program: AgentProgram,
    request: TurnRequest,
    io: TurnIo,
    client: TurnClient,
    peers: Peers,
  ) {
    this.#provider = provider
    this.#program = program
    this.#request = request
    this.#io = io
    this.#client = client
    this.#peers = peers
  }

  /** The whole turn: what happens in it goes to the client's frames. */
  async run(): Promise<void> {
    const { frames, updates } = this.#client
    const { conversationId } = this.#request
    const startedAt = performance.now()
    let before: number | undefined = 0
    let failure: TurnFailure | undefined
    let again = true
    try {
      const peer = await this.#peers.take(
        conversationId,
        this.#provider,
        this.#client.tree,
        this.#request.sessionId,
        this.#io.signal,
      )
      before = peer.costUsd
      // A session that an earlier process opened has cost what nobody here knows.
      const remembers = await Promise.race([this.#work(peer), this.#client.died])
      if (!remembers) before ??= 0
      if (updates.costUsd !== undefined) peer.costUsd = updates.costUsd
    } catch (error) {
      failure = this.#failureOf(error)
      again = failure !== undefined && !(error instanceof Crashed)
      if (!failure && !this.#io.signal.aborted) throw error
    } finally {
      await this.#client.close()
      await this.#peers.release(conversationId, this.#provider, again)
    }
    const costUsd =
      updates.costUsd === undefined || before === undefined ? undefined : Math.max(0, updates.costUsd - before)
    frames.push(...updates.close(), {
      kind: 'usage',
      numTurns: 1,
      durationMs: Math.round(performance.now() - startedAt),
      ...(costUsd !== undefined && { costUsd }),
    })
    if (failure && !this.#io.signal.aborted) frames.push({ kind: 'error', ...failure })
  }

  /** Answers whether the program remembers what was said before. */
  async #work(peer: AgentPeer): Promise<boolean> {
    const { model, harness, permissionMode, sessionId: before } = this.#request
    const { paths, frames } = this.#client
    const leave = peer.serve(this.#client)
    try {
      const session = await peer.open(this.#client.tree.seen.cwd, before, this.#io.signal)
      frames.push(
        { kind: 'session', sessionId: peer.sessionId! },
        { kind: 'init', model, provider: this.#provider, harness },
      )
      this.#client.listen(peer.sessionId!)
      const words = await opening(this.#request, { session, images: peer.takesImages }, paths)
      if (permissionMode === 'plan') await this.#planned(peer, words)
      else await this.#say(peer, words)
      return session
    } finally {
      leave()
    }
  }

  /** Two rounds: one for the plan, and one to carry it out once a person said yes. */
  async #planned(peer: AgentPeer, words: ContentBlock[]): Promise<void> {
    const { updates, frames } = this.#client
    this.#client.planning = true
    const leavePlan = await peer.plan(this.#io.signal)
    await this.#say(peer, words)
    const text = updates.takeSaid().trim()
    frames.push(...updates.close())
    if (!text || !this.#request.attended || this.#io.signal.aborted) return leavePlan()
    await frames.flushed()
    const reply = await this.#io.raise({ kind: 'plan', text })
    this.#client.planning = false
    await leavePlan()
    if (this.#io.signal.aborted) return
    if (reply?.kind !== 'plan' || !reply.approve) {
      const feedback =
        (reply?.kind === 'plan' && reply.feedback) || 'The plan was not approved, so nothing more is done.'
      return frames.push({ kind: 'delta', text: feedback }, { kind: 'text_end' })
    }
    this.#io.mode('bypassPermissions')
    await this.#say(peer, approval())
  }

  async #say(peer: AgentPeer, words: ContentBlock[]): Promise<void> {
    const { conversationId, run } = this.#request
    const reason = await peer.prompt(
      words,
      { 'sandbox/conversation': conversationId, 'sandbox/run': run },
      this.#io.signal,
    )
    if (reason === 'end_turn' || this.#io.signal.aborted) return
    throw new Failed({ message: `${this.#program.label} ${STOPS[reason] ?? 'stopped for a reason it does not name'}` })
  }

  /** What a person reads of an end that was not good; undefined for a bug. */
  #failureOf(error: unknown): TurnFailure | undefined {
    const { label } = this.#program
    if (error instanceof Failed) return error.failure
    if (error instanceof Crashed) return { code: 'harness-crashed', message: `${label} ${error.message}` }
    const { code, message, data, name } = error as { code?: unknown; message?: unknown; data?: unknown; name?: unknown }
    if (name !== 'RequestError' || typeof message !== 'string') return undefined
    const { code: named, details } = fieldsOf(data)
    const known = code === UNAUTHENTICATED ? ('reauth' as const) : choiceField(named, CODES)
    const said = [message || `${label} failed without saying why`, typeof details === 'string' ? details : '']
      .filter(Boolean)
      .join(': ')
    return { message: said.slice(0, MOST_MESSAGE).toWellFormed(), ...(known && { code: known }) }
  }
}
