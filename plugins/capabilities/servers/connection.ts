import type { AuthProvider, Client, ElicitRequest, ElicitResult, Transport } from '@modelcontextprotocol/client'
import { Refusal, type Host, ignored } from '../../../sdk/index.js'
import { checkedFetch } from '../../../sdk/node/network/checked-fetch.js'
import { wayTo } from '../../../sdk/node/network/outbound.js'
import { assertInstalled } from '../agents/program-wall.js'
import type { OpenEntry } from '../records/kinds.js'
import { masked } from '../records/masking.js'
import type { SignInTokens } from '../login/tokens.js'
import { boundedFetch } from './bounded-fetch.js'
import { toolServerIn, signsIn, type HttpServer, type StdioServer } from './config.js'
import type { McpInfo } from './contract.js'
import { floodOf, forgiving } from './forgiving.js'
import { serverCommand } from './place.js'
import { isPluginServer } from './plugin-server.js'
import { StdioTransport } from './stdio-transport.js'
import { serverTools, type ServerTool } from './tool-list.js'

/** How long the handshake may take, and each list of what a server has, whatever its answers trickle in as. */
const HELLO_MS = 30_000
const MOST_PAGES = 20

/** Why a server cannot be used, with the code of its state. */
export class ServerFailure extends Refusal {
  readonly code: 'unreachable' | 'unauthorized' | 'sign-in' | 'crashed'

  constructor(code: ServerFailure['code'], message: string, cause?: unknown) {
    super('dependency', message, { cause })
    this.code = code
  }
}

/** What a connection is opened with. */
export interface ServerConnectionDeps {
  readonly host: Pick<Host, 'place' | 'call' | 'serves'>
  readonly entry: OpenEntry
  /** Of people who signed in to the server. */
  readonly tokens: Pick<SignInTokens, 'token'>
  readonly conversationId?: string
  /** It carries out what a person approved, and does not only look at the server. */
  readonly acts?: boolean
  readonly signal: AbortSignal
  /** The server asks a person something. */
  readonly elicit?: (params: ElicitRequest['params'], signal: AbortSignal) => Promise<ElicitResult>
  /** It says that its tools changed. */
  readonly toolsChanged?: () => void
  readonly helloMs?: number
}

type Library = typeof import('@modelcontextprotocol/client')

/** One session with a server: a process of its own, or a session over HTTP. */
export class ServerConnection {
  readonly client: Client
  readonly entry: OpenEntry
  readonly #transport: Transport
  readonly #kind: McpInfo['transport']
  readonly #library: Library
  readonly #helloMs: number
  #closed = false
  /** Resolves when it has ended. */
  readonly over: Promise<void>

  constructor(
    client: Client,
    transport: Transport,
    kind: McpInfo['transport'],
    { entry, helloMs = HELLO_MS }: Pick<ServerConnectionDeps, 'entry' | 'helloMs'>,
    library: Library,
  ) {
    this.client = client
    this.entry = entry
    this.#helloMs = helloMs
    this.#transport = transport
    this.#kind = kind
    this.#library = library
    const { promise, resolve } = Promise.withResolvers<void>()
    this.over = promise
    client.onclose = () => {
      this.#closed = true
      resolve()
    }
  }

  /** Whether it is over. */
  get closed(): boolean {
    return this.#closed
  }

  get pid(): number | undefined {
    return this.#transport instanceof StdioTransport ? this.#transport.pid : undefined
  }

  /** Why the process of the server ended, as the rest of a sentence; undefined: it did not, or is none. */
  async crash(): Promise<string | undefined> {
    return this.#transport instanceof StdioTransport ? this.#transport.lost() : undefined
  }

  async tools(signal: AbortSignal): Promise<ServerTool[]> {
    if (!this.client.getServerCapabilities()?.tools) return []
    const { tools } = await this.client.listTools(undefined, { signal: this.#soon(signal), cacheMode: 'refresh' })
    return serverTools(tools)
  }

  async info(signal: AbortSignal): Promise<McpInfo> {
    const { client } = this
    const server = client.getServerVersion()
    const instructions = client.getInstructions()?.slice(0, 8000).toWellFormed()
    const protocol = client.getNegotiatedProtocolVersion()
    const able = client.getServerCapabilities() ?? {}
    const options = { signal: this.#soon(signal) }
    const [resources, prompts] = await Promise.all([
      able.resources ? client.listResources(undefined, options).then(({ resources: found }) => found.length, none) : 0,
      able.prompts ? client.listPrompts(undefined, options).then(({ prompts: found }) => found.length, none) : 0,
    ])
    return {
      ...(server && {
        server: {
          name: server.name.slice(0, 200),
          version: server.version.slice(0, 100),
          ...(instructions && { instructions }),
        },
      }),
      ...(protocol !== undefined && { protocol }),
      transport: this.#kind,
      capabilities: CAPABILITIES.filter(name => name in able),
      resources,
      prompts,
      ...(this.pid !== undefined && { pid: this.pid }),
    }
  }

  /** For a list of what a server has, however many pages it is: limits of the library are for one request. */
  #soon(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, AbortSignal.timeout(this.#helloMs)])
  }

  /** Whether a failure says that the server does not know the session any more: what was asked has not been done. */
  forgotten(error: unknown): boolean {
    if (this.#kind !== 'http' || !(error instanceof this.#library.SdkHttpError)) return false
    // Some servers name a session they do not know in a 400.
    return error.status === 404 || (error.status === 400 && /session/i.test(error.message))
  }

  /** Whether a failure is the server's answer to what was asked, and not one of the connection. */
  answered(error: unknown): boolean {
    return error instanceof this.#library.ProtocolError
  }

  /** A failure of this connection as a sentence. */
  failure(error: unknown): Promise<ServerFailure> {
    return failureOf(error, this.#transport, this.entry, this.#library)
  }

  /** Ends it: the process with everything it started, or the session. */
  async close(): Promise<void> {
    this.#closed = true
    if ('terminateSession' in this.#transport)
      await Promise.race([
        (this.#transport as { terminateSession(): Promise<void> })
          .terminateSession()
          .catch(ignored('a server may not know the session any more')),
        new Promise(resolve => setTimeout(resolve, 2000).unref()),
      ])
    await this.client.close()
  }
}

/**
 * Starts or reaches a server and agrees with it on the protocol.
 *
 * @throws A `ServerFailure`, or a refusal that names what is wrong with the config.
 */
export const openConnection = async (deps: ServerConnectionDeps): Promise<ServerConnection> => {
  const server = toolServerIn(deps.entry)
  const library = await import('@modelcontextprotocol/client')
  return server.kind === 'stdio' ? overStdio(deps, server, library) : overHttp(deps, server, library)
}

const CAPABILITIES = ['tools', 'resources', 'prompts', 'sampling', 'elicitation', 'logging'] as const
const none = () => 0
/** What a program says that ends because it may not write. */
const READ_ONLY = /EROFS|read-?only (?:file ?system|database)/i

const clientFor = (library: Library, { elicit, toolsChanged }: ServerConnectionDeps): Client => {
  const client = new library.Client(
    { name: 'sandbox', version: '1' },
    {
      capabilities: elicit ? { elicitation: { form: {} } } : {},
      listMaxPages: MOST_PAGES,
      ...(toolsChanged && {
        listChanged: { tools: { autoRefresh: false, debounceMs: 200, onChanged: () => toolsChanged() } },
      }),
    },
  )
  if (elicit) client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) => elicit(params, mcpReq.signal))
  return client
}

const overStdio = async (
  deps: ServerConnectionDeps,
  server: StdioServer,
  library: Library,
): Promise<ServerConnection> => {
  const { host, entry, conversationId, acts = false } = deps
  await assertInstalled(host.place, { ...entry, program: server.program })
  const transport = forgiving(new StdioTransport(await serverCommand(host, entry, server, { conversationId, acts })))
  return connected(deps, transport, 'stdio', library)
}

const overHttp = async (
  deps: ServerConnectionDeps,
  server: HttpServer,
  library: Library,
): Promise<ServerConnection> => {
  const { host, entry, signal } = deps
  // The address of a plugin's server came with its code.
  const near = !isPluginServer(entry.id)
  const reach = async () => ({ near, listeners: (await host.call('kernel.listeners')).listeners })
  await wayTo(server.url, await reach(), signal).catch(error => {
    if (error instanceof Refusal) throw new ServerFailure('unreachable', error.message, error)
    throw new ServerFailure('unreachable', `${server.url.host} has no address (${(error as Error).message})`, error)
  })
  const authProvider = await authProviderFor(deps, server.url, library)
  const options = {
    requestInit: { headers: { ...server.headers } },
    fetch: boundedFetch(checkedFetch(reach)),
    ...(authProvider && { authProvider }),
  }
  const current = forgiving(new library.StreamableHTTPClientTransport(server.url, options))
  try {
    return await connected(deps, current, 'http', library)
  } catch (error) {
    if (!isOlder((error as Error).cause, library)) throw error
    const older = new library.SSEClientTransport(server.url, options)
    return await connected(deps, older, 'event-stream', library).catch(() => {
      // The older transport was a guess: what the server said first is what helps.
      throw error
    })
  }
}

/** The tokens of a sign-in, for each request anew; undefined: nobody signed in. */
const authProviderFor = async (
  { entry, tokens }: ServerConnectionDeps,
  url: URL,
  { UnauthorizedError }: Library,
): Promise<AuthProvider | undefined> => {
  if (!signsIn(entry)) return undefined
  let sent = await tokens.token(entry.id, url)
  if (sent === undefined) return undefined
  return {
    token: async () => (sent = await tokens.token(entry.id, url)),
    onUnauthorized: async () => {
      if ((await tokens.token(entry.id, url, sent)) === undefined) throw new UnauthorizedError()
    },
  }
}

/** Whether a server may speak the older transport only: it refuses the first request, but not who makes it. */
const isOlder = (error: unknown, { SdkHttpError }: Library): boolean =>
  error instanceof SdkHttpError && error.status >= 400 && error.status < 500 && ![401, 403, 429].includes(error.status)

const connected = async (
  deps: ServerConnectionDeps,
  transport: Transport,
  kind: McpInfo['transport'],
  library: Library,
): Promise<ServerConnection> => {
  const { entry, signal, helloMs = HELLO_MS } = deps
  const client = clientFor(library, deps)
  const connection = new ServerConnection(client, transport, kind, deps, library)
  const late = AbortSignal.any([signal, AbortSignal.timeout(helloMs)])
  // The library limits its first request alone, and neither what follows it nor how an older server begins.
  const tooLate = new Promise<never>((_, reject) => {
    const timedOut = new library.SdkError(library.SdkErrorCode.RequestTimeout, 'the handshake took too long')
    late.addEventListener('abort', () => reject(timedOut), { once: true })
  })
  try {
    await Promise.race([client.connect(transport, { signal, timeout: helloMs }), tooLate])
    return connection
  } catch (error) {
    const failure = await failureOf(error, transport, entry, library)
    await connection.close().catch(ignored('the failure before it counts'))
    signal.throwIfAborted()
    throw failure
  }
}

/** What went wrong with a server, as a sentence without secrets. */
const failureOf = async (
  error: unknown,
  transport: Transport,
  entry: OpenEntry,
  { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError }: Library,
): Promise<ServerFailure> => {
  if (error instanceof ServerFailure) return error
  const { id, secrets } = entry
  const flood = floodOf(transport)
  if (flood !== undefined) return new ServerFailure('crashed', `the server ${id} ${flood}`, error)
  const crash = transport instanceof StdioTransport ? await transport.lost() : undefined
  if (crash !== undefined) {
    const hint = READ_ONLY.test(crash)
      ? '; the workspace is read-only for it here: let it write in its home folder'
      : ''
    return new ServerFailure('crashed', masked(`the server ${id} ${crash}${hint}`, secrets), error)
  }
  const beside = transport instanceof StdioTransport && transport.beside ? `; it ${transport.beside}` : ''
  const status = error instanceof SdkHttpError ? error.status : undefined
  if ((error instanceof UnauthorizedError || status === 401) && signsIn(entry))
    return new ServerFailure('sign-in', `the server ${id} asks to sign in: POST /capabilities/${id}/login`, error)
  if (error instanceof UnauthorizedError || status === 401 || status === 403)
    return new ServerFailure(
      'unauthorized',
      `the server ${id} refuses access (${status ?? 401}): give it a valid token, or sign in`,
      error,
    )
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
    return new ServerFailure('unreachable', masked(`the server ${id} did not answer in time${beside}`, secrets), error)
  if (error instanceof ProtocolError)
    return new ServerFailure('unreachable', masked(`the server ${id} refused: ${error.message}`, secrets), error)
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } }
  // The library's own readers have no limit of their own.
  if (error instanceof RangeError || (error as Error).cause instanceof RangeError)
    return new ServerFailure(
      'unreachable',
      `the server ${id} answered with something nested too deep to be read`,
      error,
    )
  const why = cause?.code ?? cause?.message
  return new ServerFailure(
    'unreachable',
    masked(`the server ${id} failed: ${message}${why === undefined ? '' : ` (${why})`}`, secrets),
    error,
  )
}

/** Opens a connection for as long as something takes. */
export const withConnection = async <T>(
  deps: ServerConnectionDeps,
  work: (connection: ServerConnection) => Promise<T>,
): Promise<T> => {
  const connection = await openConnection(deps)
  try {
    return await work(connection)
  } catch (error) {
    deps.signal.throwIfAborted()
    throw error instanceof Refusal ? error : await connection.failure(error)
  } finally {
    await connection.close().catch(ignored('it may have ended already'))
  }
}
