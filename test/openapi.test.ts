import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createConfig, lint } from '@redocly/openapi-core'
import type { oas31 } from 'openapi3-ts'
import t from 'tap'
import { parseManifest } from '../kernel/manifest.js'
import { openapi, wordsOfName } from '../openapi/document.js'
import type { PublishedGroup } from '../openapi/group.js'
import { assembled, partsOf, SHARED } from '../openapi/groups.js'
import { kernelGroup } from '../openapi/kernel.js'
import { nameOfSchema, resolve } from '../openapi/schemas.js'
import type { JsonSchema, Schemas } from '../openapi/schemas.js'
import type { Contract } from '../sdk/contract.js'
import { STATUS, type Reason } from '../sdk/refusal.js'
import { exactly } from './support/lists.js'
import { misfits, type Schema as Shape } from './support/schema.js'

const project = process.cwd()
const generate = join(project, 'dist/openapi/generate.js')
const document = JSON.parse(await readFile('openapi/openapi.json', 'utf8')) as oas31.OpenAPIObject
const schemas = document.components!.schemas as Schemas

const operations = Object.entries(document.paths!).flatMap(([path, item]) =>
  Object.entries(item as { [method: string]: oas31.OperationObject }).map(([method, operation]) => ({
    call: `${method.toUpperCase()} ${path}`,
    operation,
  })),
)

const manifests = await Promise.all(
  (await readdir('manifests'))
    .filter(file => file !== 'schema.json')
    .map(async file => parseManifest(await readFile(join('manifests', file), 'utf8'), file)),
)

const run = (cwd: string, file: string, args: string[]): Promise<{ code: number; out: string; err: string }> =>
  new Promise(done => {
    const child = execFile(process.execPath, [file, ...args], { cwd, maxBuffer: 64 << 20 }, (_, out, err) =>
      done({ code: child.exitCode ?? 1, out, err }),
    )
  })

t.test('the published document and the schema of manifests are current', async t => {
  const { code, err } = await run(project, generate, ['--check'])
  t.equal(code, 0, err)
})

t.test('a document that is not current is found, and written anew', async t => {
  const text = (name: string) => readFile(join('manifests', name), 'utf8')
  const cwd = t.testdir({
    manifests: { 'system.json': await text('system.json'), 'schema.json': '{}' },
    openapi: {
      'openapi.json': await readFile('openapi/openapi.json', 'utf8'),
      groups: { 'gone.json': '{}', 'system.json': '{}' },
    },
  })
  const stale = await run(cwd, generate, ['--check'])
  t.equal(stale.code, 1)
  for (const line of [
    /openapi\/openapi\.json is not current/,
    /openapi\/groups\/system\.json is not current/,
    /openapi\/groups\/gone\.json belongs to no group/,
    /manifests\/schema\.json is not current/,
  ])
    t.match(stale.err, line)
  t.equal((await run(cwd, generate, [])).code, 0)
  t.same((await readdir(join(cwd, 'openapi/groups'))).sort(), ['kernel.json', 'shared.json', 'system.json'])
  t.equal((await run(cwd, generate, ['--check'])).code, 0)
})

/** Rules that the contract's own paths break, such as by a literal beside a parameter, or by a slash at the end. */
const EXPECTED = new Set(['no-ambiguous-paths', 'no-path-trailing-slash'])

t.test('the document has no lint errors, and no warnings but the expected ones', async t => {
  const config = await createConfig({ extends: ['recommended'] })
  const published = await readFile(join(project, 'openapi/openapi.json'), 'utf8')
  // The linter does not look into fields of our own, where the frames of sockets are.
  const isUsed = (message: string) =>
    published.includes(`"#/components/schemas/${/"(\w+)" is never used/.exec(message)?.[1]}"`)
  const problems = (await lint({ ref: join(project, 'openapi/openapi.json'), config })).filter(
    ({ ruleId, message }) => ruleId !== 'no-unused-components' || !isUsed(message),
  )
  t.same(
    problems.filter(({ ruleId }) => !EXPECTED.has(ruleId)),
    [],
  )
})

t.test('every operation says what it does, who may use it and how it can be refused', async t => {
  for (const { call, operation } of operations) {
    t.ok(operation.summary && !operation.summary.includes('\n'), `${call} has a summary of one line`)
    t.ok(
      Object.keys(operation.responses!).some(status => status.startsWith('4')),
      `${call} can be refused`,
    )
    t.equal(operation.tags?.length, 1, `${call} has one tag`)
    t.equal(
      operation.security!.length === 0,
      operation['x-floor'] === 'open',
      `${call} asks for a credential unless it is open`,
    )
    t.equal(
      operation.security!.some(scheme => 'token' in scheme),
      operation['x-token'].length > 0,
      `${call} offers the token scheme only where a scope reaches it`,
    )
  }
  const tags = document.tags!.map(tag => tag.name)
  t.same(
    operations.filter(({ operation }) => !tags.includes(operation.tags![0]!)),
    [],
    'every tag is declared',
  )
})

t.test('the operations are exactly the routes of the manifests and of the kernel, with their ids', t => {
  const expected = [...manifests, kernelGroup.manifest].flatMap(({ routes }) =>
    Object.entries(routes).map(([call, { id }]) => `${id} ${call}`),
  )
  const published = operations.map(({ call, operation }) => `${operation.operationId} ${call}`)
  t.same(published.toSorted(), expected.toSorted())
  t.equal(
    new Set(operations.map(({ operation }) => operation.operationId)).size,
    operations.length,
    'no id is used twice',
  )
  t.end()
})

t.test('no name made up for an anonymous type is published, and every schema is used', t => {
  const text = JSON.stringify(document)
  t.notMatch(text, /__type|\.o\d+|"Stream(?!Error")/)
  t.equal(
    new Set(Object.keys(schemas).map(name => name.toLowerCase())).size,
    Object.keys(schemas).length,
    'names differ in more than case',
  )
  for (const name of Object.keys(schemas)) {
    t.match(name, /^[A-Z][A-Za-z0-9]*$/)
    t.notMatch(
      name,
      /undefined|string|number|boolean|^(?:Partial|Omit|Pick|Record|Required|Readonly|Array)[A-Z]/,
      `${name} is a name somebody chose`,
    )
    t.ok(text.includes(`"#/components/schemas/${name}"`), `${name} is used`)
  }
  t.end()
})

/** The smallest value a schema allows. */
const sample = (schema: JsonSchema): unknown => {
  const whole = resolve(schema, schemas)!
  if (whole.const !== undefined) return whole.const
  if (whole.enum) return whole.enum[0]
  if (whole.oneOf) return sample(whole.oneOf[0] as JsonSchema)
  if (whole.type === 'string') return (whole.pattern === '^/' ? '/' : 'a').repeat(whole.minLength ?? 1)
  if (whole.type === 'integer' || whole.type === 'number') return whole.minimum ?? 0
  if (whole.type === 'boolean') return true
  if (whole.type === 'array')
    return Array.from({ length: whole.minItems ?? 0 }, () => sample(whole.items as JsonSchema))
  return Object.fromEntries((whole.required ?? []).map(name => [name, sample(whole.properties![name] as JsonSchema)]))
}

t.test(
  'an input made from the document passes the check of requests, and one without a required field does not',
  async t => {
    for (const { entry, routes } of manifests) {
      const { contract } = (await import(pathToFileURL(join(project, 'dist', entry)).href)) as { contract: Contract }
      for (const { call, operation } of operations.filter(({ call }) => routes[call])) {
        const body = (operation.requestBody as oas31.RequestBodyObject | undefined)?.content['application/json']?.schema
        const parameters = (operation.parameters ?? []) as oas31.ParameterObject[]
        const given = parameters
          .filter(({ required }) => required)
          .map(({ name, schema }) => [name, sample(schema as JsonSchema)])
        const input = { ...(body ? (sample(body as JsonSchema) as object) : {}), ...Object.fromEntries(given) }
        t.ok(contract.request({ call, input }).success, `${call} takes ${JSON.stringify(input)}`)
        for (const name of Object.keys(input)) {
          const { [name]: _, ...rest } = input as { [name: string]: unknown }
          t.notOk(contract.request({ call, input: rest }).success, `${call} needs ${name}`)
        }
      }
    }
  },
)

t.test(
  'every operation has an example of what is sent and answered, and each passes the checks of its contract',
  async t => {
    const kernel = { manifest: kernelGroup.manifest, contract: undefined }
    const groups = await Promise.all(
      manifests.map(async manifest => ({
        manifest,
        contract: ((await import(pathToFileURL(join(project, 'dist', manifest.entry)).href)) as { contract: Contract })
          .contract,
      })),
    )
    for (const {
      manifest: { name, routes },
      contract,
    } of [...groups, kernel]) {
      const examples = (contract?.examples?.() ?? {}) as {
        [call: string]: { input?: object; output: { message?: unknown; server?: unknown; client?: unknown } }
      }
      if (contract) t.same(Object.keys(examples).sort(), Object.keys(routes).sort(), `${name} shows each of its routes`)
      for (const { call, operation } of operations.filter(({ call }) => routes[call])) {
        const { input = {}, output = {} } = examples[call] ?? {}
        const shown = (operation.parameters ?? []) as oas31.ParameterObject[]
        t.same(
          shown.filter(one => one.required && one.example === undefined).map(one => one.name),
          [],
          `${call} shows what must be given`,
        )
        for (const one of shown)
          if (one.example !== undefined)
            t.same(misfits(one.schema as Shape, one.example, one.name), [], `${call} ${one.name}`)
        const body = (operation.requestBody as oas31.RequestBodyObject | undefined)?.content['application/json']
        if (body) t.same(misfits(body.schema as Shape, body.example), [], `${call} takes the body shown`)
        for (const [type, { schema, example, examples: events = {} }] of Object.entries(
          (operation.responses!['200']?.content ?? {}) as oas31.ContentObject,
        )) {
          if (!schema) continue
          const values =
            type === 'text/event-stream'
              ? Object.values(events).map(event => (event as oas31.ExampleObject).value as unknown)
              : [example as unknown]
          t.ok(values.length > 0)
          for (const value of values) t.same(misfits(schema as Shape, value), [], `${call} answers what is shown`)
        }
        if (!contract) continue
        t.same(
          contract.request({ call, input }),
          { success: true, data: { call, input } },
          `${call} takes the input shown`,
        )
        const { message, server, client } = output
        if (client)
          t.ok(contract.request({ call: `${call} frame`, input: client }).success, `${call} takes the frame shown`)
        if (operation.responses!['200']?.content?.['application/json'] || message || server)
          t.same(
            reasonsOf(contract, call, server ?? (operation['x-stream'] === true ? message : output)),
            [],
            `${call} answers the output shown`,
          )
      }
    }
  },
)

const reasonsOf = (contract: Contract, call: string, output: unknown): object[] => {
  const checked = contract.reply()({ call, output })
  return checked.success ? [] : [...checked.errors]
}

const group = (
  name: string,
  calls: { [call: string]: { input?: object; output?: object; doc?: string } },
  named: { [name: string]: object } = {},
): PublishedGroup => ({
  manifest: {
    name,
    label: name,
    summary: `The ${name}.`,
    routes: Object.fromEntries(
      Object.keys(calls).map((call, at) => [call, { id: `${name}.call${at}`, role: 'viewer', tokens: [] }]),
    ),
  },
  contract: {
    schema: () => ({
      components: { schemas: named },
      functions: Object.entries(calls).map(([call, { input, output = { type: 'boolean' }, doc = 'Does it.' }]) => ({
        name: call,
        description: doc,
        parameters: input ? [{ name: 'input', schema: input }] : [],
        output: { schema: output },
      })),
    }),
  },
})
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const text = { type: 'string' }
const ID = { input: { type: 'object', properties: { id: text }, required: ['id'] } }

t.test('two groups may publish the same type, and two types of one word carry the name of their group', t => {
  const one = group('ports', { 'GET /ports': { output: ref('Port') } }, { Port: { type: 'integer' } })
  const same = group('panels', { 'GET /panels': { output: ref('Port') } }, { Port: { type: 'integer' } })
  const named = (...groups: PublishedGroup[]) => {
    const { components, paths } = openapi(groups)
    const names = Object.keys(components!.schemas!).filter(name => /Port/.test(name))
    return { names, text: JSON.stringify(paths) }
  }
  t.same(named(one, same).names, ['Port'])
  const other = group(
    'web-panels',
    { 'GET /panels': { output: { oneOf: [ref('Port')], discriminator: { propertyName: 'x', mapping: ref('Port') } } } },
    { Port: text },
  )
  const both = named(one, other)
  t.same(both.names, ['PortsPort', 'WebPanelsPort'])
  t.match(both.text, '"mapping":{"$ref":"#/components/schemas/WebPanelsPort"}')
  t.match(both.text, '"schema":{"$ref":"#/components/schemas/PortsPort"}')
  t.notMatch(both.text, '"#/components/schemas/Port"')
  const list = { type: 'object', properties: { port: ref('Port') } }
  t.same(
    named(
      group('a', { 'GET /a': { output: ref('PortList') } }, { PortList: list, Port: text }),
      group('b', { 'GET /b': { output: ref('PortList') } }, { PortList: list, Port: { type: 'integer' } }),
      group('c', { 'GET /c': { output: ref('OtherPort') } }, { OtherPort: text }),
    ).names,
    ['APort', 'APortList', 'BPort', 'BPortList', 'OtherPort'],
    'what refers to such a type differs too',
  )
  const unused = group('panels', { 'GET /panels': {} }, { Port: text })
  t.same(named(one, unused).names, ['Port'], 'a type no route uses is left out')
  const before = group('x', { 'GET /x': { output: ref('PortsPort') } }, { PortsPort: { type: 'boolean' } })
  t.throws(() => openapi([one, other, before]), {
    message: 'ports and x both publish a type PortsPort, and they differ: rename one',
  })
  t.throws(
    () => openapi([group('x', { 'GET /x': { output: ref('Refusal') } }, { Refusal: text })]),
    /the kernel and x both publish a type Refusal/,
  )
  t.end()
})

t.test('the parts of the groups make the document, each with what it alone publishes', async t => {
  const parts = partsOf(document)
  t.same(Object.keys(parts).sort(), [...manifests.map(({ name }) => name), 'kernel', SHARED].sort())
  t.equal(JSON.stringify(assembled(parts)), JSON.stringify(document))
  for (const { name } of manifests) {
    const { paths, components, tags } = parts[name]!
    t.same(
      Object.values(paths as { [path: string]: { [method: string]: { 'x-group': string } } })
        .flatMap(item => Object.values(item))
        .filter(operation => operation['x-group'] !== name),
      [],
      `${name} has the operations it shows`,
    )
    t.ok(tags!.length <= 1, `${name} has its own tag`)
    const others = JSON.stringify({ ...parts, [name]: {} })
    t.same(
      Object.keys(components!.schemas!).filter(schema => others.includes(`"#/components/schemas/${schema}"`)),
      [],
      `${name} keeps what no other part refers to`,
    )
  }
  const [one, two] = [group('one', { 'GET /x/{id}': ID }), group('two', { 'DELETE /x/{id}': ID })]
  const crossed = openapi([one, two])
  t.equal(JSON.stringify(assembled(partsOf(crossed))), JSON.stringify(crossed), 'two groups at one path')
})

t.test('a branch that cannot be published is refused with the call that mends it', t => {
  const input = { type: 'object', properties: { id: text }, required: ['id'] }
  const refused = (calls: Parameters<typeof group>[1], named?: { [name: string]: object }) => () =>
    openapi([group('x', calls, named)])
  t.throws(refused({ 'GET /x': { output: ref('__type.o1') } }, { '__type.o1': text }), /x: .*anonymous type __type\.o1/)
  t.throws(refused({ 'GET /x/{other}': { input } }), /GET \/x\/\{other\} has no field other/)
  t.throws(refused({ 'GET /x': { input: { oneOf: [text, input] } } }), /GET \/x takes a union/)
  t.throws(refused({ 'GET /x': { output: ref('Gone') } }), /x: nothing is named Gone/)
  t.throws(() => openapi([group('x', { 'GET /x': {} }), group('y', { 'GET /x': {} })]), {
    message: 'x and y both serve GET /x',
  })
  const twice = group('x', { 'GET /x': {}, 'POST /x': {} })
  t.throws(
    () =>
      openapi([
        {
          ...twice,
          manifest: {
            ...twice.manifest,
            routes: {
              'GET /x': { id: 'x.a', role: 'viewer', tokens: [] },
              'POST /x': { id: 'x.a', role: 'viewer', tokens: [] },
            },
          },
        },
      ]),
    /the same id x\.a/,
  )
  t.throws(
    () => openapi([{ ...twice, manifest: { ...twice.manifest, routes: {} } }]),
    /GET \/x has no access in the manifest/,
  )
  t.end()
})

t.test('every reason that a group refuses for is declared by one of its calls', async t => {
  for (const { name, routes } of manifests) {
    const files = (await readdir(join('plugins', name), { recursive: true })).filter(file => file.endsWith('.ts'))
    const texts = await Promise.all(files.map(file => readFile(join('plugins', name, file), 'utf8')))
    const reasons = new Set(
      texts.flatMap(text =>
        [...text.matchAll(/(?:refuse|new Refusal)\('([a-z-]+)'/g)].map(([, reason]) => reason as Reason),
      ),
    )
    const declared = new Set(
      operations.filter(({ call }) => routes[call]).flatMap(({ operation }) => Object.keys(operation.responses!)),
    )
    t.same(
      [...reasons].filter(reason => !declared.has(String(STATUS[reason]))),
      [],
      name,
    )
  }
})

t.test('a call refuses as the rules for its kind say, and as its docstring declares', t => {
  const input = { type: 'object', properties: { id: text, name: text }, required: ['id'] }
  const doc = 'Does it.\n\nMore.\n\n- 404: no such `id`, nor\n  another\n- 409: it runs'
  const { paths } = openapi([group('x', { 'GET /x': {}, 'POST /x/{id}': { input, doc } })])
  t.same(Object.keys(paths!['/x']!.get!.responses!), ['200', '400', '401', '403', '429', '500', '503', 'default'])
  const { description, responses } = paths!['/x/{id}']!.post!
  t.equal(description, 'More.')
  t.same(Object.keys(responses!), [
    '200',
    '400',
    '401',
    '403',
    '404',
    '409',
    '413',
    '415',
    '429',
    '500',
    '503',
    'default',
  ])
  t.same(responses![404], { $ref: '#/components/responses/NotFound', description: 'No such `id`, nor another.' })
  t.throws(
    () => openapi([group('x', { 'GET /x': { doc: 'Does it.\n\n- 418: a teapot' } })]),
    /no reason of a refusal has the status 418: expected one of 400, 401/,
  )
  t.end()
})

t.test('an input travels in the path, the query or the body as its route says', t => {
  const input = {
    type: 'object',
    properties: { id: { ...text, description: 'Which one.' }, force: { type: 'boolean' } },
    required: ['id'],
  }
  const { paths } = openapi([
    group('x', { 'GET /x/{id}': { input }, 'POST /x/{id}': { input }, 'DELETE /x': { input }, 'x.inner': { input } }),
  ])
  t.match(
    paths!['/x/{id}']!.get!.parameters,
    exactly(
      { name: 'id', in: 'path', required: true, description: 'Which one.', schema: { type: 'string' } },
      { name: 'force', in: 'query', required: false },
    ),
  )
  t.same(paths!['/x/{id}']!.post!.requestBody, {
    required: false,
    content: { 'application/json': { schema: { type: 'object', properties: { force: { type: 'boolean' } } } } },
  })
  t.match(paths!['/x']!.delete!.requestBody, { required: true })
  t.notMatch(JSON.stringify(paths), /inner/, 'a call without a route is left out')
  t.end()
})

t.test('a stream publishes its events and its end, a download its media type', t => {
  const stream = { type: 'object', properties: { 'event-stream': text, 'event-end': { type: 'integer' } } }
  const bytes = {
    type: 'object',
    properties: {
      'content-type': { oneOf: [{ const: 'image/png' }, { const: 'text/html; charset=utf-8' }] },
      data: text,
    },
  }
  const { paths, components } = openapi([
    group('x', { 'GET /x': { output: ref('StreamX') }, 'GET /y': { output: bytes } }, { StreamX: stream }),
  ])
  t.same(paths!['/x']!.get!.responses![200].content, {
    'text/event-stream': {
      schema: {
        oneOf: [ref('XCall0Message'), ref('XCall0Done'), ref('StreamError')],
        discriminator: {
          propertyName: 'event',
          mapping: { message: ref('XCall0Message').$ref, done: ref('XCall0Done').$ref, error: ref('StreamError').$ref },
        },
      },
    },
  })
  const { XCall0Message: message, XCall0Done: done, StreamError: error } = components!.schemas as Schemas
  t.match(message, {
    properties: { event: { const: 'message' }, data: text, id: text },
    required: exactly('event', 'data'),
  })
  t.match(done, { properties: { event: { const: 'done' }, data: { type: 'integer' } } })
  t.throws(
    () => openapi([group('x', { 'GET /x': { output: ref('StreamX') } }, { StreamX: stream, XCall0Done: text })]),
    /GET \/x publishes events as XCall0Done: rename/,
  )
  t.match(error, { properties: { event: { const: 'error' }, data: ref('Refusal') } })
  t.equal(paths!['/x']!.get!['x-stream'], true)
  t.notOk(components!.schemas!.StreamX)
  t.same(Object.keys(paths!['/y']!.get!.responses![200].content), ['image/png', 'text/html'])
  t.end()
})

t.test('the same groups in another order give the same text', t => {
  const one = group('a', { 'POST /b': {}, 'GET /b': {} })
  const two = group('b', { 'GET /a': {} })
  t.equal(JSON.stringify(openapi([one, two])), JSON.stringify(openapi([two, one])))
  t.same(
    openapi([one, two], { url: 'http://127.0.0.1:1' }).servers!.map(({ url }) => url),
    ['http://127.0.0.1:1'],
  )
  t.end()
})

t.test('the order in which the compiler met the members of a union does not show', t => {
  const kinds = ['b', 'a', 'c'].map(kind => ({ const: kind }))
  const forms = ['Two', 'One'].map(ref)
  const mapping = { two: '#/components/schemas/Two', one: '#/components/schemas/One' }
  const union = (turn: <T>(list: T[]) => T[]) =>
    openapi([
      group(
        'x',
        {
          'POST /x': {
            input: { type: 'object', properties: { kind: { oneOf: turn(kinds) } } },
            output: {
              oneOf: turn(forms),
              discriminator: { propertyName: 'kind', mapping: Object.fromEntries(turn(Object.entries(mapping))) },
            },
          },
        },
        { One: text, Two: text },
      ),
    ])
  t.equal(JSON.stringify(union(list => list)), JSON.stringify(union(list => list.toReversed())))
  t.end()
})

t.test('the first sentence is the summary and the rest the description', t => {
  t.same(wordsOfName('List them.'), { summary: 'List them' })
  t.same(wordsOfName('List them,\nnewest first. `limit` counts\nrows.\n\n- one\n- two'), {
    summary: 'List them, newest first',
    description: '`limit` counts rows.\n\n- one\n- two',
  })
  t.same(wordsOfName(''), {})
  t.equal(nameOfSchema({ $ref: '#/components/responses/X' }), undefined)
  t.end()
})
