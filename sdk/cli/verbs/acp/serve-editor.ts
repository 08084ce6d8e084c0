import { Readable, Writable } from 'node:stream'
import {
  agent,
  type AgentContext,
  type ListSessionsResponse,
  MessageTooLargeError,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
} from '@agentclientprotocol/sdk'
import type { Client } from '../../../client.js'
import { Unreached } from '../../../client.js'
import { ignored } from '../../../ignored.js'
import { Refusal } from '../../../refusal.js'
import { exitFor } from '../../exit-codes.js'
import { mintConversation } from '../../follow/turn.js'
import { asTyped } from '../../terminal/own-name.js'
import { jsonLine, oneLine } from '../../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../../verb.js'
import { say } from '../../terminal/write.js'
import type { SessionMenus } from './choices.js'
import { Daemons, editorPath, type ServedFolder } from './daemons.js'
import type { EditorAbilities } from './open-cards.js'
import { EditorSession, type ForkedFrom, type OpenedConversation, type SessionDeps } from './session.js'

/** Sessions of one editor beyond this are refused. */
const MOST_SESSIONS = 200
const PAGE = 100
const MODELS = 200

/** The way to sign in, which is the command line's own. */
const SIGN_IN = {
  id: 'sandbox',
  name: 'Sandbox of this machine',
  description: 'Start the daemon with "sandbox serve"; for one elsewhere put a control token into SANDBOX_TOKEN',
}

type Fields = { readonly [name: string]: unknown }

const fieldsIn = (params: unknown): Fields =>
  typeof params === 'object' && params !== null && !Array.isArray(params)
    ? (params as Fields)
    : wrong('expected an object as params')

const wrong = (message: string): never => {
  throw new RequestError(-32602, message)
}

const textIn = (params: Fields, name: string): string => {
  const value = params[name]
  return typeof value === 'string' ? value : wrong(`${name}: expected a text, found ${typeof value}`)
}

/** An error of the protocol for what failed: one sentence. */
const errorFor = (error: unknown): RequestError => {
  if (error instanceof RequestError) return error
  const { message, reason } = exitFor(error)
  const sentence = asTyped(message)
  if (error instanceof Refusal && !(error instanceof Unreached)) {
    if (error.reason === 'unauthenticated') return new RequestError(-32000, sentence)
    if (error.reason === 'not-found') return new RequestError(-32002, sentence)
    if (error.reason === 'invalid' || error.reason === 'unprocessable') return new RequestError(-32602, sentence)
  }
  // Without a daemon or a credential the editor offers to sign in.
  if (error instanceof CommandFailure && (error.code === EXIT.noDaemon || error.code === EXIT.refused))
    return new RequestError(-32000, sentence)
  return new RequestError(-32603, sentence, { reason })
}

/** The sessions of one editor. */
class EditorServer {
  readonly #daemons: Daemons
  readonly #sessions = new Map<string, EditorSession>()
  readonly #listening = new Set<Client>()
  readonly #over = new AbortController()
  #editor: AgentContext | undefined
  abilities: EditorAbilities = { shows: { notices: false, compactions: false }, forms: false }

  constructor(terminal: Terminal, given: GivenArguments) {
    this.#daemons = new Daemons(terminal, given)
  }

  connected(editor: AgentContext): void {
    this.#editor = editor
  }

  /** Whether a daemon can be reached as somebody. */
  async signIn(): Promise<void> {
    await this.#daemons.anywhere()
  }

  async open(cwd: string): Promise<EditorSession> {
    return this.#add(cwd, mintConversation(), await this.#menus(await this.#served(cwd)), {})
  }

  /** Opens a conversation that there is; `show` replays it, or follows what runs. */
  async reopen(id: string, cwd: string, show: 'replay' | 'resume'): Promise<EditorSession> {
    const served = await this.#served(cwd)
    const card = await this.#card(served.client, id)
    const menus = await this.#menus(served, card)
    this.#sessions.get(id)?.close()
    this.#sessions.delete(id)
    const session = this.#add(cwd, id, menus, { card })
    await (show === 'replay' ? session.replay(card) : session.resume(card))
    return session
  }

  /** Opens a new conversation that begins with the messages of another one, in the same mode and model. */
  async fork(id: string, cwd: string): Promise<EditorSession> {
    const served = await this.#served(cwd)
    const { client, copies } = served
    const menus = await this.#menus(served, await this.#card(client, id))
    const { total } = await client.call('GET /agents/{id}/transcript', { id, limit: 1 })
    // Where the mode of the other conversation cannot be read, the new one asks.
    const own = { ...menus, mode: menus.mode ?? 'default', modeChosen: true, isolated: copies }
    return this.#add(cwd, mintConversation(), own, { fork: { conversationId: id, keep: total, files: 'now' } })
  }

  async list(cwd: string | undefined, cursor: string | undefined): Promise<ListSessionsResponse> {
    const { client, root, startIn } = cwd === undefined ? await this.#daemons.anywhere() : await this.#served(cwd)
    const inside = (folder = '') => !startIn || folder === startIn || folder.startsWith(`${startIn}/`)
    const all = (await conversationsOf(client))
      .filter(one => inside(one.startIn))
      .toSorted((one, other) => other.updatedAt - one.updatedAt || (one.id < other.id ? 1 : -1))
    const after = cursor === undefined ? undefined : /^(\d{1,15})\.([\w-]{1,64})$/.exec(cursor)
    if (after === null) wrong('cursor: expected the nextCursor of an earlier page')
    const [, at = '', last = ''] = after ?? []
    const rest = after
      ? all.filter(({ updatedAt, id }) => updatedAt < Number(at) || (updatedAt === Number(at) && id < last))
      : all
    const page = rest.slice(0, PAGE)
    const end = page.at(-1)
    return {
      sessions: page.map(({ id, title, updatedAt, startIn: folder }) => ({
        sessionId: id,
        cwd: folder ? editorPath(root, folder) : root,
        updatedAt: new Date(updatedAt).toISOString(),
        ...(title !== undefined && { title }),
      })),
      ...(end && rest.length > PAGE && { nextCursor: `${end.updatedAt}.${end.id}` }),
    }
  }

  /** Archives a conversation: it leaves the list, and its record stays. */
  async remove(id: string): Promise<void> {
    const { client } = (await this.#sessions.get(id)?.served()) ?? (await this.#daemons.anywhere())
    await client.call('POST /agents/archive', { ids: [id] })
    this.close(id)
  }

  session(id: string): EditorSession {
    return this.#sessions.get(id) ?? raise(RequestError.sessionNotFound(id))
  }

  close(id: string): void {
    this.#sessions.get(id)?.close()
    this.#sessions.delete(id)
  }

  /** The editor has gone: turns go on. */
  async end(): Promise<void> {
    this.#over.abort()
    for (const id of [...this.#sessions.keys()]) this.close(id)
    await this.#daemons.close()
  }

  async #served(cwd: string): Promise<ServedFolder> {
    const served = await this.#daemons.at(cwd)
    this.#listen(served.client)
    return served
  }

  #add(
    cwd: string,
    id: string,
    menus: SessionMenus,
    from: { readonly card?: OpenedConversation; readonly fork?: ForkedFrom },
  ): EditorSession {
    if (this.#sessions.size >= MOST_SESSIONS)
      throw new Refusal('too-many', `expected at most ${MOST_SESSIONS} open sessions; close one first`)
    const deps: SessionDeps = {
      editor: this.#editor!,
      abilities: this.abilities,
      signal: this.#over.signal,
      served: () => this.#served(cwd),
    }
    const session = new EditorSession(id, menus, deps, from)
    this.#sessions.set(id, session)
    // Editors ignore what they are told of a session before they know its id.
    setTimeout(() => void session.announce().catch(ignored('the editor has gone')), 0)
    return session
  }

  async #menus({ client, copies }: ServedFolder, card?: OpenedConversation): Promise<SessionMenus> {
    const { choices } = await client
      .call('GET /providers/models', { ready: '1', limit: MODELS })
      .catch((error: unknown) => (error instanceof Unreached ? Promise.reject(error) : { choices: [] }))
    return {
      mode: card ? card.permissionMode : 'bypassPermissions',
      modeChosen: card === undefined,
      chosen: card ? { agent: card.provider, ...(card.model !== undefined && { model: card.model }) } : {},
      effort: card?.effort,
      isolated: card ? undefined : copies,
      models: choices,
    }
  }

  #card(client: Client, id: string): Promise<OpenedConversation> {
    return client
      .call('GET /agents/{id}', { id })
      .catch(error => (isForbidden(error) ? openedByToken(client, id) : raise(error)))
      .catch(error => raise(isAbsent(error) ? RequestError.sessionNotFound(id) : error))
  }

  /** Follows what changes in the sandbox, so that open sessions show turns that others begin. */
  #listen(client: Client): void {
    if (this.#listening.has(client)) return
    this.#listening.add(client)
    const follow = async () => {
      for await (const event of await client.call('GET /events', { roster: 'delta' }, { signal: this.#over.signal }))
        if (event.kind === 'agent' && event.agent) this.#sessions.get(event.agent.id)?.changed(event.agent)
    }
    follow()
      .then(
        () => this.#daemons.forget(client),
        // A token that may not follow them does without.
        (error: unknown) => isForbidden(error) || this.#daemons.forget(client),
      )
      .catch(ignored('the next call finds the daemon'))
  }
}

const raise = (error: unknown): never => {
  throw error
}

const isForbidden = (error: unknown): boolean => error instanceof Refusal && error.reason === 'forbidden'

/** A conversation as an editor's token reads it: whether a turn runs shows in its frames and its record. */
const openedByToken = async (client: Client, id: string): Promise<OpenedConversation> => {
  const { provider, model, title, messages } = await client.call('GET /sessions/{id}', { id, limit: 1 })
  const known = { provider, ...(model !== undefined && { model }), title }
  const enough = new AbortController()
  try {
    for await (const event of await client.call(
      'POST /agent/attach',
      { conversationId: id },
      { signal: enough.signal },
    )) {
      if (event.kind !== 'attached') break
      const { run, startedAt } = event
      return { ...known, run, ...(messages.at(-1)?.run !== run && { startedAt }) }
    }
  } catch (error) {
    // Its frames are not kept any more.
    if (!isAbsent(error)) throw error
  } finally {
    enough.abort()
  }
  return known
}

const isAbsent = (error: unknown): boolean => error instanceof Refusal && error.reason === 'not-found'

interface ListedConversation {
  readonly id: string
  readonly title?: string
  readonly updatedAt: number
  readonly startIn?: string
}

/** The conversations of the board; an editor's token sees those that it opened. */
const conversationsOf = async (client: Client): Promise<readonly ListedConversation[]> => {
  try {
    return (await client.call('GET /agents')).agents
  } catch (error) {
    if (!isForbidden(error)) throw error
    const { sessions } = await client.call('GET /sessions', { state: 'live', limit: 500 })
    return sessions
  }
}

/** Serves the Agent Client Protocol on standard input and output until the editor goes. */
export const serveEditor = async (terminal: Terminal, given: GivenArguments): Promise<void> => {
  const server = new EditorServer(terminal, given)
  const answered =
    <T, R>(work: (params: T, signal: AbortSignal) => Promise<R>) =>
    async ({ params, signal }: { params: T; signal: AbortSignal }): Promise<R> => {
      try {
        return await work(params, signal)
      } catch (error) {
        throw errorFor(error)
      }
    }
  const app = agent({ name: 'sandbox' })
    .onRequest('initialize', ({ params: { clientCapabilities = {} } }) => {
      const { session, elicitation } = clientCapabilities
      server.abilities = {
        shows: { notices: Boolean(session?.notices), compactions: Boolean(session?.compaction) },
        forms: Boolean(elicitation?.form),
      }
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'sandbox', title: 'Sandbox', version: terminal.version },
        authMethods: [SIGN_IN],
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, embeddedContext: true },
          mcpCapabilities: { http: false, sse: false },
          sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, fork: {} },
        },
      }
    })
    .onRequest(
      'authenticate',
      answered(async ({ methodId }) => {
        if (methodId !== SIGN_IN.id) wrong(`methodId: expected ${SIGN_IN.id}, found ${oneLine(methodId.slice(0, 80))}`)
        await server.signIn()
        return {}
      }),
    )
    .onRequest(
      'session/new',
      answered(async ({ cwd }) => {
        const session = await server.open(cwd)
        return { sessionId: session.id, ...session.menus }
      }),
    )
    .onRequest(
      'session/load',
      answered(async ({ sessionId, cwd }) => (await server.reopen(sessionId, cwd, 'replay')).menus),
    )
    .onRequest(
      'session/resume',
      answered(async ({ sessionId, cwd }) => (await server.reopen(sessionId, cwd, 'resume')).menus),
    )
    .onRequest(
      'session/fork',
      fieldsIn,
      answered(async params => {
        const session = await server.fork(textIn(params, 'sessionId'), textIn(params, 'cwd'))
        return { sessionId: session.id, ...session.menus }
      }),
    )
    .onRequest(
      'session/list',
      answered(({ cwd, cursor }) => server.list(cwd ?? undefined, cursor ?? undefined)),
    )
    .onRequest(
      'session/delete',
      answered(async ({ sessionId }) => {
        await server.remove(sessionId)
        return {}
      }),
    )
    .onRequest(
      'session/close',
      answered(async ({ sessionId }) => {
        server.session(sessionId)
        server.close(sessionId)
        return {}
      }),
    )
    .onRequest(
      'session/set_mode',
      answered(async ({ sessionId, modeId }) => {
        await server.session(sessionId).setMode(modeId)
        return {}
      }),
    )
    .onRequest(
      'session/set_model',
      fieldsIn,
      answered(async params => {
        await server.session(textIn(params, 'sessionId')).setModel(textIn(params, 'modelId'))
        return {}
      }),
    )
    .onRequest(
      'session/set_config_option',
      answered(async ({ sessionId, configId, value }) => {
        const session = server.session(sessionId)
        await session.setOption(configId, value)
        return { configOptions: session.menus.configOptions }
      }),
    )
    .onRequest(
      'session/prompt',
      answered(({ sessionId, prompt }, signal) => server.session(sessionId).prompt(prompt, signal)),
    )
    .onNotification('session/cancel', async ({ params: { sessionId } }) => {
      await server
        .session(sessionId)
        .cancel()
        .catch(error => say(terminal, jsonLine({ message: errorFor(error).message })))
    })
  const output = Writable.toWeb(terminal.out as Writable) as WritableStream<Uint8Array>
  const input = Readable.toWeb(terminal.in) as ReadableStream<Uint8Array>
  const connection = app.onConnect(({ client }) => server.connected(client)).connect(ndJsonStream(output, input))
  const stop = () => connection.close()
  terminal.signal.addEventListener('abort', stop, { once: true })
  try {
    await connection.closed
    const why: unknown = connection.signal.reason
    if (why instanceof MessageTooLargeError) throw new CommandFailure(EXIT.failed, why.message)
  } finally {
    terminal.signal.removeEventListener('abort', stop)
    await server.end()
  }
}
