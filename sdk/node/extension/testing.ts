import { Refusal } from '../../refusal.js'
import { BackendAnswers, piecesOf } from './answers.js'
import { authorHost } from './author-host.js'
import { Denied, deny } from './denied.js'
import {
  ManifestEntries,
  parametersOf,
  patternHolds,
  routePattern,
  type DeclaredEntries,
  type RoutePattern,
} from './entries.js'
import type { ExtensionDocumentText, ExtensionHost, ExtensionModule, ExtensionToolResult, ExtRequest } from './host.js'
import { ExtensionLink, LinkError } from './link.js'
import {
  testedListener,
  type ListenerFakes,
  type TestedContributions,
  type TestedListener,
} from './testing-listener.js'
import { onePiece, testedOutside, type OutsideFakes } from './testing-outside.js'
import { TestedSchedule } from './testing-schedule.js'
import { testedSecrets, type SecretFakes, type TestedSetting } from './testing-secrets.js'
import { testedWorkspace } from './testing-files.js'
import type { BackendOperations, HostOperations, LinkFailure, OperationInput, OperationOutput } from './protocol.js'

/** What a test needs of a manifest. */
export interface TestedManifest {
  readonly publisher?: string
  readonly name?: string
  readonly version?: string
  readonly permissions?: DeclaredEntries
  readonly contributes?: TestedContributions & {
    readonly tools?: readonly { readonly name: string }[]
    readonly documents?: readonly { readonly id: string }[]
    readonly settings?: readonly TestedSetting[]
    readonly [other: string]: unknown
  }
}

/** What stands in for the daemon. */
export interface HostFakes extends OutsideFakes, SecretFakes {
  /** Routes by their entry, such as `GET /workspace/tree`. */
  readonly calls?: { readonly [entry: string]: (input: unknown) => unknown }
  /** Texts of workspace files, with which a temporary folder begins. */
  readonly files?: { readonly [path: string]: string }
  readonly listener?: ListenerFakes
}

/** A host for one test, and what the extension did with it. */
export interface TestedHost {
  readonly host: ExtensionHost
  /** Lines that were logged. */
  readonly logged: { level: string; message: string; fields?: object }[]
  /** Stored values by key. */
  readonly stored: Map<string, unknown>
  readonly published: { name: string; data: unknown }[]
  /** The folder that stands in for the workspace; removed at the end. */
  readonly workspace: string
  /** Runs `activate` of a module with the host. */
  activate(module: ExtensionModule): Promise<void>
  /** Asks a route of the extension; `undefined`: it has none. */
  request(entry: string, request?: Partial<ExtRequest>): Promise<{ status: number; body: unknown } | undefined>
  /** Calls a tool of the extension. */
  tool(name: string, input: unknown): Promise<ExtensionToolResult>
  /** Asks it for the text of a document. */
  document(id: string, name: string, bytes: Uint8Array): Promise<ExtensionDocumentText>
  /** Sends an event of the sandbox to its listeners; `workspaceChanged` with `paths` also to its watches of files. */
  send(kind: string, event: object): Promise<void>
  /**
   * Moves the clock of its schedule on by these ms, and runs what is due until then in its order. Nothing scheduled
   * runs by itself.
   */
  tick(ms: number): Promise<void>
  /** Its messages to automations, and the replies to them. */
  readonly listener: TestedListener
  stop(): Promise<void>
}

/** A test of tap or of Node's own runner: the host ends with it. */
export type TestLifetime = { teardown(work: () => unknown): void } | { after(work: () => unknown): void }

type Handle = (input: never) => unknown

const failureOf = (error: unknown): LinkFailure => {
  if (error instanceof Denied) return { message: error.message, code: 'denied', entry: error.entry }
  if (error instanceof Refusal) return { message: error.message, code: error.reason, status: error.status }
  return { message: error instanceof Error ? error.message : String(error) }
}

/**
 * A host that tests an extension without a daemon: it checks the manifest's entries as the daemon does, keeps what is
 * stored in memory and files in a temporary folder, and answers the rest with fakes.
 *
 * Background programs (`processes.start`, `stop`, `status`, `onExit`) need the terminals and the wall of a daemon, so
 * these reject here; nor are references filled in, or the limits of numbers and sizes applied.
 */
export const hostFor = (t: TestLifetime, manifest: TestedManifest, fakes: HostFakes = {}): TestedHost => {
  const { publisher = 'local', name = 'extension', version = '0.0.0', permissions = {} } = manifest
  const id = `${publisher}.${name}`
  const entries = new ManifestEntries(id, permissions)
  const answers = new BackendAnswers()
  const stored = new Map<string, unknown>()
  const logged: TestedHost['logged'] = []
  const published: TestedHost['published'] = []
  const routes = new Map<number, RoutePattern>()
  const subscribed = new Map<number, string>()
  const workspace = testedWorkspace(entries, fakes.files ?? {})
  const called = (entry: string, input: unknown): unknown => {
    const [method = '', path = ''] = entry.split(' ')
    const segments = path.slice(1).split('/')
    if (!entries.routes.some(pattern => patternHolds(pattern, method, segments))) deny(entry)
    const fake = fakes.calls?.[entry]
    if (!fake) throw new Error(`the test has no fake for ${entry}`)
    return fake(input ?? {})
  }
  const automated = testedListener(manifest.contributes ?? {}, fakes.listener ?? {}, {
    offer: items => daemon.offer(items),
    ask: (op, input) => daemon.request(op, input),
  })
  const schedule = new TestedSchedule(key => daemon.request('due', { key }))
  const handlers: { [O in keyof HostOperations]?: Handle } = {
    log: (line: TestedHost['logged'][number]) => void logged.push(line),
    'storage.get': ({ key }: { key: string }) => ({ value: stored.get(key) }),
    'storage.set': ({ key, value }: { key: string; value: unknown }) => void stored.set(key, structuredClone(value)),
    'storage.delete': ({ key }: { key: string }) => ({ existed: stored.delete(key) }),
    'storage.list': ({ prefix = '' }: { prefix?: string }) => ({
      keys: [...stored.keys()].filter(key => key.startsWith(prefix)).sort(),
    }),
    'storage.compareAndSet': ({ key, expected, value }: { key: string; expected?: unknown; value: unknown }) => {
      const done = JSON.stringify(stored.get(key)) === JSON.stringify(expected)
      if (done) stored.set(key, value)
      return { done }
    },
    call: ({ entry, input }: { entry: string; input?: unknown }) =>
      Promise.resolve(called(entry, input)).then(value => ({ value })),
    stream: ({ entry, input }: { entry: string; input?: unknown }) =>
      daemon.offer(called(entry, input) as AsyncIterable<unknown>),
    'routes.handle': ({ route, entry }: { route: number; entry: string }) => {
      const pattern = routePattern(entry)
      if (!pattern) throw new Error(`entry: expected METHOD /path, found ${entry}`)
      routes.set(route, pattern)
    },
    'routes.off': ({ route }: { route: number }) => void routes.delete(route),
    'events.on': ({ subscription, kind }: { subscription: number; kind: string }) => {
      if (entries.event(kind) === undefined) deny(`event:${kind}`)
      subscribed.set(subscription, kind)
    },
    'events.off': ({ subscription }: { subscription: number }) => void subscribed.delete(subscription),
    'events.publish': (event: { name: string; data: unknown }) => void published.push(event),
    'tools.handle': (tool: { name: string }) => {
      if (!manifest.contributes?.tools?.some(declared => declared.name === tool.name))
        throw new Error(`the manifest contributes no tool ${tool.name}`)
    },
    'documents.handle': (document: { id: string }) => {
      if (!manifest.contributes?.documents?.some(declared => declared.id === document.id))
        throw new Error(`the manifest contributes no documents ${document.id}`)
    },
    'documents.off': () => {},
    ...automated.handlers,
    ...workspace.handlers,
    ...testedSecrets(id, manifest.contributes?.settings ?? [], entries, fakes),
    ...testedOutside(entries, fakes, items => daemon.offer(items)),
    'schedule.at': (work: OperationInput<HostOperations, 'schedule.at'>) => schedule.at(work),
    'schedule.cron': (work: OperationInput<HostOperations, 'schedule.cron'>) => schedule.cron(work),
    'tools.off': () => {},
    'tools.progress': () => {},
    'tools.offer': () => ({}),
    'tools.pay': () => ({ ok: false, text: 'no wallet is connected' }),
    'tools.served': () => {},
  }
  const daemon: ExtensionLink<BackendOperations> = new ExtensionLink<BackendOperations>({
    send: message => queueMicrotask(() => author.receive(structuredClone(message))),
    failure: failureOf,
    answer: async (op, input) => {
      const handle = Object.hasOwn(handlers, op) ? handlers[op as keyof HostOperations] : undefined
      if (!handle) throw new LinkError({ message: `hostFor does not do ${op}: use a daemon for this test` })
      return (await handle(input as never)) ?? {}
    },
  })
  const author: ExtensionLink<HostOperations> = new ExtensionLink<HostOperations>({
    send: message => queueMicrotask(() => daemon.receive(structuredClone(message))),
    failure: failureOf,
    answer: (op, input, signal) => answers.answer(author, op, input, signal),
  })
  const ask = <O extends keyof BackendOperations & string>(
    op: O,
    input: OperationInput<BackendOperations, O>,
  ): Promise<OperationOutput<BackendOperations, O>> => daemon.request(op, input)
  const identity = { id, version, source: 'workspace', dir: '/extension', dataDir: '/data', server: '' } as const
  const host = authorHost(identity, author, answers, (work, ms) => schedule.every(work, ms))
  const settled = () => new Promise<void>(resolve => setImmediate(resolve))
  const tested: TestedHost = {
    host,
    logged,
    stored,
    published,
    workspace: workspace.root,
    listener: automated.tested,
    activate: async module => {
      await module.activate(host)
      await settled()
    },
    request: async (entry, { headers = {}, query = {}, body, caller } = {}) => {
      await settled()
      const [method = '', path = ''] = entry.split(' ')
      const segments = path.slice(1).split('/')
      const found = [...routes].find(([, pattern]) => patternHolds(pattern, method, segments))
      if (!found) return undefined
      const [route, pattern] = found
      const bytes =
        body === undefined ? undefined : Buffer.from(body instanceof Uint8Array ? body : JSON.stringify(body))
      const answer = await ask('route', {
        route,
        method,
        path,
        params: parametersOf(pattern, segments),
        query,
        headers,
        caller: caller ?? { kind: 'person', actor: 'owner@example.org', role: 'owner' },
        ...(bytes && { body: daemon.offer(onePiece(bytes)) }),
        ...(bytes && !(body instanceof Uint8Array) && { json: true as const }),
      })
      return { status: answer.status ?? 200, body: answer.json ?? answer.bytes }
    },
    tool: (tool, input) =>
      ask('tool', { name: tool, call: 1, input, conversationId: 'test', run: 'test', unattended: false }),
    document: (document, file, bytes) =>
      ask('document', { id: document, name: file, bytes: daemon.offer(piecesOf(bytes)) }),
    send: async (kind, event) => {
      await settled()
      for (const [subscription, wanted] of subscribed)
        if (wanted === kind || (wanted.endsWith('*') && kind.startsWith(wanted.slice(0, -1))))
          await ask('event', { subscription, event })
      if (kind === 'workspaceChanged') for (const seen of workspace.seen(event)) await ask('files', seen)
    },
    tick: async ms => {
      await settled()
      await schedule.tick(ms)
    },
    stop: async () => {
      await ask('stop', {})
      workspace.remove()
    },
  }
  if ('teardown' in t) t.teardown(() => tested.stop())
  else t.after(() => tested.stop())
  return tested
}
