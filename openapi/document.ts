import { oas31 } from 'openapi3-ts'
import { isRoute } from '../sdk/contract.js'
import type { CallSchema } from '../sdk/contract.js'
import { EVERY_GROUP, withNames } from './components.js'
import type { GroupTypes } from './components.js'
import type { DocumentAccess, PublishedGroup } from './group.js'
import { kernelGroup, OPEN_TAG } from './kernel.js'
import { declaredIn, refusals, refusalSchemas, refusalsOf, UPGRADE_REQUIRED } from './refusals.js'
import { order, published, reached, resolve } from './schemas.js'
import type { JsonSchema, Schemas } from './schemas.js'
import { streamEventsOf } from './events.js'
import { withExample } from './examples.js'
import type { Example } from './examples.js'

/** The address of the daemon in the document; default: the document's origin. */
export interface DocumentOptions {
  readonly url?: string
}

const ABOUT = [
  'The daemon that coding agents run behind: one HTTP contract beside the code they work on.',
  'A person signs in and sends `authorization: Bearer <session>`; a program sends a control token as '
    + '`x-sandbox-control`. `x-floor` names the least role of a person and `x-token` the scopes of a token that '
    + 'reach a call.',
  'Every failure is JSON with a `message` for a person and a `reason` for a program. A stream is server-sent '
    + 'events: `message` events, then `done`, or `error` with a message; one that ends with neither was cut. The '
    + 'schema of '
    + '`text/event-stream` is that of one event: its type as `event`, its JSON as `data`, and its `id`, where it '
    + 'has one.',
  'A call whose `x-stream` is `socket` is a WebSocket (RFC 6455): each side sends texts that hold one JSON frame, '
    + '`x-client-frame` '
    + 'of the client and `x-server-frame` of the sandbox. It closes with 1000 when it is done, 1001 when the '
    + 'sandbox stops, 1007 at a '
    + 'frame that does not fit, 1008 when access ends and 1011 when the sandbox failed.',
].join('\n\n')

const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'] as const

/** Builds the OpenAPI 3.1 document from the contracts and manifests of groups. The same groups give the same text. */
export const openapi = (groups: readonly PublishedGroup[], options: DocumentOptions = {}): oas31.OpenAPIObject => {
  const builder = oas31.OpenApiBuilder.create()
    .addOpenApiVersion('3.1.0')
    .addInfo({ title: 'Sandbox daemon', version: '1', description: ABOUT, license: { name: 'MIT', identifier: 'MIT' } })
    .addServer({ url: options.url ?? '/', description: 'This sandbox.' })
  const sorted = [...groups].sort((a, b) => order(a.manifest.name, b.manifest.name)).concat(kernelGroup)
  const shown = sorted.map(({ manifest }) => manifest)
  const { operations: all, schemas } = withNames([
    { group: EVERY_GROUP, operations: [], schemas: refusalSchemas },
    ...sorted.map(group => operationsOf(group, shown)),
  ])
  const names = shown.map(({ name }) => name)
  const operations = all.sort((a, b) => names.indexOf(a.shownIn) - names.indexOf(b.shownIn))
  const tags = new Map(operations.map(({ tag }) => [tag.name, tag]))
  tags.delete(OPEN_TAG.name)
  for (const tag of [...tags.values(), OPEN_TAG]) builder.addTag(tag)
  for (const [path, item] of pathsOf(operations)) builder.addPath(path, item)
  for (const [name, schema] of schemas) builder.addSchema(name, schema)
  const used = new Set(
    operations.flatMap(({ operation }) => Object.values(operation.responses!)).map(response => String(response.$ref)),
  )
  for (const [name, response] of Object.entries(refusals)) {
    if (used.has(`#/components/responses/${name}`)) builder.addResponse(name, response)
  }
  builder
    .addSecurityScheme('session', { type: 'http', scheme: 'bearer', description: 'The session of a person.' })
    .addSecurityScheme('token', {
      type: 'apiKey',
      in: 'header',
      name: 'x-sandbox-control',
      description: 'A control token of a program.',
    })
  return builder.getSpec()
}

interface Operation {
  /** The plugin that serves it. */
  readonly group: string
  /** The group that the document shows it in. */
  readonly shownIn: string
  readonly method: (typeof METHODS)[number]
  readonly path: string
  readonly tag: { name: string; description: string }
  readonly operation: oas31.OperationObject
}

/** The group of an operation id, which may differ from the plugin that owns the state and serves the route. */
const shownIn = (
  { id }: DocumentAccess,
  groups: readonly PublishedGroup['manifest'][],
  serving: PublishedGroup['manifest'],
): PublishedGroup['manifest'] => groups.find(({ name }) => name === id.split('.', 1)[0]) ?? serving

const operationsOf = (
  { manifest, contract }: PublishedGroup,
  groups: readonly PublishedGroup['manifest'][],
): GroupTypes<Operation> => {
  const {
    components: { schemas: named = {} },
    functions,
  } = contract.schema()
  // typia generates JSON Schemas for OpenAPI 3.1; `Shape` types only the part that the daemon reads.
  const schemas = Object.fromEntries(
    Object.entries(named).map(([name, shape]) => [name, published(shape as JsonSchema)]),
  )
  // Untyped here, since the calls of the group are not known: one example for each call with a route.
  const examples = (contract.examples?.() ?? {}) as { readonly [call: string]: Example }
  const types: Schemas = {}
  const operations = functions
    .filter(call => isRoute(call.name))
    .map((call): Operation => {
      const [method, path] = call.name.split(' ') as [(typeof METHODS)[number], string]
      const access = manifest.routes[call.name]
      if (!access) throw new Error(`${manifest.name}: ${call.name} has no access in the manifest`)
      if (!METHODS.includes(method)) throw new Error(`${manifest.name}: ${call.name} has no method the document knows`)
      const group = shownIn(access, groups, manifest)
      const tag = access.id.startsWith('open.') ? OPEN_TAG : { name: group.label, description: group.summary }
      const { operation: bare, made } = describe(group.name, tag.name, call, access, schemas)
      const operation = withExample(bare, examples[call.name])
      const taken = Object.keys(made).find(name => schemas[name])
      if (taken !== undefined)
        throw new Error(`${manifest.name}: ${call.name} publishes events as ${taken}: rename the type of that name`)
      const all = { ...refusalSchemas, ...schemas, ...made }
      for (const name of reached(operation, all)) types[name] = all[name]!
      return { group: manifest.name, shownIn: group.name, method, path, tag, operation }
    })
  return { group: manifest.name, operations, schemas: types }
}

/** Paths in order, each with its methods in their usual order. */
const pathsOf = (operations: readonly Operation[]): [string, oas31.PathItemObject][] => {
  const ids = new Map<string, string>()
  const paths = new Map<string, oas31.PathItemObject>()
  const sorted = [...operations].sort(
    (a, b) => order(a.path, b.path) || METHODS.indexOf(a.method) - METHODS.indexOf(b.method),
  )
  for (const { group, method, path, operation } of sorted) {
    const route = `${method} ${path}`
    const id = operation.operationId!
    const item = paths.get(path) ?? {}
    const key = method.toLowerCase() as Lowercase<typeof method>
    if (item[key]) throw new Error(`${item[key]['x-group']} and ${group} both serve ${route}`)
    if (ids.has(id)) throw new Error(`${ids.get(id)} and ${route} of ${group} have the same id ${id}`)
    ids.set(id, route)
    paths.set(path, { ...item, [key]: operation })
  }
  return [...paths]
}

interface Described {
  readonly operation: oas31.OperationObject
  /** The types that the document adds for it, such as the events of its stream. */
  readonly made: Schemas
}

const describe = (
  group: string,
  tag: string,
  call: CallSchema,
  access: DocumentAccess,
  schemas: Schemas,
): Described => {
  const [method, path = ''] = call.name.split(' ')
  const open = 'open' in access
  const { text, declared } = declaredIn(call.description)
  const { parameters, body } = inputOf(group, call, schemas, access)
  const success = replyOf(group, call, access.id, schemas)
  const limit = access.body ? `At most ${size(access.body)}.` : undefined
  const operation: oas31.OperationObject = {
    tags: [tag],
    operationId: access.id,
    ...wordsOfName(text),
    ...(call.deprecated && { deprecated: true }),
    ...((parameters.length > 0 || access.etag) && {
      parameters: [...parameters, ...(access.etag ? [IF_NONE_MATCH] : [])],
    }),
    ...(body && {
      requestBody: {
        ...(limit && { description: limit }),
        required: needed(resolve(body, schemas)),
        content: contentOf(body, access),
      },
    }),
    responses: {
      ...(success.frames
        ? { 101: success.response, 426: UPGRADE_REQUIRED }
        : { 200: { ...success.response, ...(access.etag && { headers: ETAG }) } }),
      ...(access.etag && { 304: { description: 'Nothing changed since the answer with this tag.' } }),
      ...refusalsOf(
        {
          // An open call with input checks its own proof: a code, a ticket, a signature.
          checked: !open || body !== undefined || parameters.length > 0,
          changes: method !== 'GET',
          named: path.includes('{'),
        },
        declared,
      ),
    },
    security: open ? [] : [{ session: [] }, ...(access.tokens.length > 0 ? [{ token: [] }] : [])],
    'x-floor': open ? 'open' : access.role,
    'x-token': open ? [] : access.tokens,
    'x-stream': success.frames ? 'socket' : success.stream,
    ...success.frames,
    'x-group': group,
  }
  return { operation, made: success.made ?? {} }
}

const contentOf = (body: JsonSchema, { forms = [] }: DocumentAccess): oas31.ContentObject => {
  if (forms.includes('raw')) return { '*/*': { schema: body } }
  if (forms.includes('binary')) return { '*/*': {} }
  return {
    'application/json': { schema: body },
    ...(forms.includes('text') && { 'text/*': { schema: { type: 'string' } } }),
    ...(forms.includes('form') && { 'application/x-www-form-urlencoded': { schema: body } }),
    ...(forms.includes('bytes') && { 'application/octet-stream': {} }),
    ...(forms.includes('multipart') && { 'multipart/form-data': { schema: body } }),
  }
}

const size = (bytes: number): string =>
  bytes % 1048576 === 0 ? `${bytes / 1048576} MiB` : bytes % 1024 === 0 ? `${bytes / 1024} KiB` : `${bytes} bytes`

/** Whether a body is required: it has a required field or is a union. */
const needed = (body: JsonSchema | undefined): boolean => body?.oneOf !== undefined || (body?.required?.length ?? 0) > 0

const ETAG: oas31.HeadersObject = { etag: { description: 'Changes when the answer does.', schema: { type: 'string' } } }

const IF_NONE_MATCH: oas31.ParameterObject = {
  name: 'if-none-match',
  in: 'header',
  description: 'The `etag` of an earlier answer.',
  required: false,
  schema: { type: 'string' },
}

/** The first sentence as the summary, everything after it as the description; lines of one paragraph are joined. */
export const wordsOfName = (text = ''): { summary?: string; description?: string } => {
  const joined = text.trim().replace(/([^\n])\n(?!\n|[-*|>#]|\d+\.|\s)/g, '$1 ')
  const [, first = joined, rest = ''] = /^(.*?[.!?])(?:\s+(?=[A-Z`\n])|\n+|$)(.*)$/s.exec(joined) ?? []
  const summary = first.replace(/\.$/, '')
  return { ...(summary && { summary }), ...(rest.trim() && { description: rest.trim() }) }
}

interface CallInput {
  readonly parameters: oas31.ParameterObject[]
  readonly body?: JsonSchema
}

/** Splits a call's input into path, query and body. */
const inputOf = (group: string, call: CallSchema, schemas: Schemas, access: DocumentAccess): CallInput => {
  const { forms = [] } = access
  const headers = 'open' in access ? [...(access.headers ?? []), ...(access.anyOrigin?.headers ?? [])] : []
  const raw = forms.includes('raw') || forms.includes('binary')
  const [method, path = ''] = call.name.split(' ')
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(match => match[1]!)
  const given = call.parameters[0] && published(call.parameters[0].schema as JsonSchema)
  const input = resolve(given, schemas)
  const fields = Object.entries(input?.properties ?? {}) as [string, JsonSchema][]
  const lost = inPath.find(name => !fields.some(([field]) => field === name))
  if (lost !== undefined) {
    throw new Error(`${group}: ${call.name} has no field ${lost} in its input: declare it in one plain object`)
  }
  if (method === 'GET' && input?.oneOf) {
    throw new Error(`${group}: ${call.name} takes a union, which a query cannot say: use one plain object`)
  }
  const travels = (name: string) =>
    headers.includes(name)
      ? 'header'
      : inPath.includes(name)
        ? 'path'
        : method === 'GET' || (raw && name !== 'body')
          ? 'query'
          : 'body'
  const parameters = fields.flatMap(([name, { description, ...schema }]): oas31.ParameterObject[] => {
    const place = travels(name)
    const required = place === 'path' || input!.required?.includes(name) === true
    return place === 'body' ? [] : [{ name, in: place, ...(description && { description }), required, schema }]
  })
  if (forms.includes('bytes')) return besideBytes(input!)
  if (raw) return { parameters, body: input!.properties!.body as JsonSchema }
  if (inPath.length === 0) {
    return { parameters, ...(method !== 'GET' && (fields.length > 0 || input?.oneOf) && { body: given! }) }
  }
  const left = fields.filter(([name]) => travels(name) === 'body')
  const required = input!.required?.filter(name => travels(name) === 'body')
  if (left.length === 0) return { parameters }
  return { parameters, body: published({ ...input, properties: Object.fromEntries(left), required: required ?? [] }) }
}

/** A call that takes bytes: the other fields come in the query with them, or in JSON without them. */
const besideBytes = (input: JsonSchema): CallInput => {
  const { bytes: _, ...properties } = input.properties as Schemas
  return {
    parameters: Object.entries(properties).map(([name, { description, ...schema }]) => ({
      name,
      in: 'query',
      description: `${description ? `${description} ` : ''}Beside bytes; in JSON it is a field of the body.`,
      required: false,
      schema,
    })),
    body: published({ ...input, properties }),
  }
}

interface Success {
  readonly stream: boolean
  readonly response: oas31.ResponseObject
  /** The frames of each side of a socket. */
  readonly frames?: { readonly 'x-client-frame': JsonSchema; readonly 'x-server-frame': JsonSchema }
  /** The events of a stream, by name. */
  readonly made?: Schemas
}

/** The success response: a value, a stream of events, the frames of a socket, or bytes. */
const replyOf = (group: string, call: CallSchema, id: string, schemas: Schemas): Success => {
  if (!call.output) throw new Error(`${group}: ${call.name} returns nothing: return Ok`)
  const schema = published(call.output.schema as JsonSchema)
  const shape = resolve(schema, schemas)
  const {
    'event-stream': event,
    'event-end': end,
    'content-type': type,
    'socket-client': client,
    'socket-server': server,
  } = (shape?.properties ?? {}) as Schemas
  const description = shape?.description ?? 'The answer.'
  if (client && server) {
    return {
      stream: false,
      response: { description: 'Frames of both sides over time.' },
      frames: { 'x-client-frame': client, 'x-server-frame': server },
    }
  }
  if (event) {
    const { schema: one, made } = streamEventsOf(id, event, end)
    return {
      stream: true,
      made,
      response: {
        description: 'Events over time, each of this form.',
        content: { 'text/event-stream': { schema: one } },
      },
    }
  }
  if (type) {
    const media = (type.enum ?? [type.const ?? '*/*']).map(name => String(name).replace(/;.*/, ''))
    const content = media.map(name => [name, name.startsWith('text/') ? { schema: { type: 'string' } } : {}])
    return { stream: false, response: { description, content: Object.fromEntries(content) } }
  }
  return { stream: false, response: { description, content: { 'application/json': { schema } } } }
}
