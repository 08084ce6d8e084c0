import { refuse, type Context } from '../../../sdk/index.js'
import { LinkError } from '../../../sdk/node/extension/link.js'
import { couldChange } from '../../../sdk/node/extension/permission-kinds.js'
import type { ConnectedTool } from '../../capabilities/contract.js'
import type { ExtensionTool } from '../manifest/manifest.js'
import type { ExtensionRecords } from '../runtime.js'
import type { ExtensionBackend } from './backend.js'
import type { ExtensionToolAsked, ExtensionToolEvent } from './contract.js'
import type { Backends } from './runtime.js'
import type { RunningToolCalls } from './tool-calls.js'

const SERVER = 'extension:'
const DEFAULT_MS = 60_000
const WAITING = 100

/** The dependencies of calling tools of extensions. */
export interface ToolDeps {
  readonly backends: Backends
  readonly records: Pick<ExtensionRecords, 'refused'>
  readonly calls: RunningToolCalls
}

/** The tools that running extensions serve, as a turn is offered them. */
export const offeredTools = ({ backends, records }: ToolDeps): { tools: ConnectedTool[]; problems: string[] } => {
  const tools = backends.all
    .filter(backend => backend.process && records.refused(backend.extension.id) === undefined)
    .flatMap(backend => declaredTools(backend).map(tool => offered(backend, tool)))
  const names = new Set<string>()
  const problems = tools.flatMap(({ agentName, server }) => {
    if (!names.has(agentName)) return names.add(agentName) && []
    return [`${server} has a tool whose name ${agentName} is taken already`]
  })
  const first = new Map(tools.toReversed().map(tool => [tool.agentName, tool]))
  return { tools: tools.filter(tool => first.get(tool.agentName) === tool), problems }
}

const declaredTools = ({ extension, tools }: ExtensionBackend): ExtensionTool[] =>
  (extension.manifest.contributes?.tools ?? []).filter(({ name }) => tools.has(name))

const offered = ({ extension: { id, manifest } }: ExtensionBackend, tool: ExtensionTool): ConnectedTool => {
  const readOnly = tool.readOnly === true && !couldChange(manifest.permissions ?? {})
  return {
    server: SERVER + id,
    name: tool.name,
    agentName: `${id.replace('.', '_')}__${tool.name}`.replaceAll('-', '_'),
    title: tool.title,
    description: tool.description,
    input: { ...tool.input },
    readOnly,
    destructive: !readOnly,
    approve: !readOnly,
  }
}

/** Calls a tool of an extension; its failure is a result for the agent. */
export async function* callExtensionTool(
  { backends, records, calls }: ToolDeps,
  { server, name, input, conversationId, run }: ExtensionToolAsked,
  { signal }: Pick<Context, 'signal'>,
): AsyncGenerator<ExtensionToolEvent, void> {
  const id = server.slice(SERVER.length)
  if (!server.startsWith(SERVER) || records.refused(id) !== undefined)
    return refuse('not-found', `no extension serves ${server.slice(0, 200)}`)
  const backend = backends.of(id)
  const tool = declaredTools(backend).find(declared => declared.name === name)
  if (!tool) return refuse('not-found', `the extension ${id} serves no tool ${name.slice(0, 200)}`)
  const { link } = await backend.running(signal)
  const waiting: ExtensionToolEvent[] = []
  let wake = () => {}
  const timeoutMs = tool.timeoutMs ?? DEFAULT_MS
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const listen = (on: boolean) => {
    clearTimeout(timer)
    if (on) timer = setTimeout(() => late.abort(), timeoutMs)
  }
  const call = calls.begin(
    id,
    event => {
      waiting.push(event)
      // Only progress can be so much that it is dropped.
      const first = waiting.findIndex(({ kind }) => kind === 'progress')
      if (waiting.length > WAITING && first >= 0) waiting.splice(first, 1)
      wake()
    },
    waits => listen(!waits),
  )
  listen(true)
  let result: ExtensionToolEvent | undefined
  const work = link
    .request(
      'tool',
      { name, call, input, conversationId, run, unattended: false },
      AbortSignal.any([signal, late.signal]),
    )
    .then(
      ({ text, data, error = false }) => ({
        kind: 'result' as const,
        ok: !error,
        text,
        ...(isRecord(data) && { structured: data }),
      }),
      error => failed(name, error, late.signal.aborted ? `did not answer within ${timeoutMs / 1000} s` : undefined),
    )
    .then(found => {
      result = found
      wake()
    })
  try {
    while (!result) {
      for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) yield event
      if (result) break
      await Promise.race([work, new Promise<void>(resolve => (wake = resolve))])
    }
    signal.throwIfAborted()
    // Steps that came just before the result belong before it.
    yield* waiting.splice(0)
    yield result
  } finally {
    clearTimeout(timer)
    calls.end(call)
  }
}

const isRecord = (data: unknown): data is { [field: string]: unknown } =>
  typeof data === 'object' && data !== null && !Array.isArray(data)

const failed = (name: string, error: unknown, late: string | undefined): ExtensionToolEvent => {
  const why = late ?? (error instanceof LinkError || error instanceof Error ? error.message : 'failed')
  return { kind: 'result', ok: false, text: `the tool ${name} ${late ? '' : 'failed: '}${why}` }
}
