import t from 'tap'
import type { CliFailure } from '../../../../sdk/cli-table.js'
import type { Schema } from '../../../../sdk/cli/calls/document.js'
import { FAILURES } from '../../../../sdk/cli/calls/failures.js'
import type { Operation } from '../../../../sdk/cli/calls/operation.js'
import { json, streaming, wire } from '../../wire.js'
import { fakeDaemon } from '../cli-process.js'
import { answerOf, document, formsOf, publishedCalls, publishedGroups } from '../published.js'

const changing = publishedCalls.filter(({ call }) => !call.startsWith('GET '))
const failuresIn = (group: string, call: string): readonly CliFailure[] => {
  const table = publishedGroups.find(each => each.group === group)?.table
  return [...[table?.failures?.[call] ?? []].flat(), ...FAILURES]
}

/** The schema of an answer, or the schemas of the events of a stream. */
const answersOf = (operation: Operation): { readonly stream: boolean; readonly schemas: readonly Schema[] } => {
  const whole = answerOf(operation)?.schema
  if (whole) return { stream: false, schemas: [whole] }
  const events = answerOf(operation, 'text/event-stream')?.schema
  const messages = events ? formsOf(events).filter(({ properties }) => properties?.event?.const === 'message') : []
  return { stream: true, schemas: messages.flatMap(({ properties }) => properties?.data ?? []) }
}

// Every field that may say so ----------------------------------------------------------------------------------------

const NAMES = new RegExp(
  '^(?:ok|errors?|fail\\w*|reachable|success\\w*|refus\\w*|reject\\w*|problems?|conflict\\w*|landed|pushed|committed|'
    + 'delivered|blocked|connected|unresolved|skipped|held|outcome|passed|valid|dropped|unlanded)$',
)
const WORDS = new Set(
  (
    'failed error fail broken undeliverable unreachable refused blocked denied unavailable conflict diverged stalled '
    + 'exhausted overspent crashed rejected invalid lost timeout expired unauthorized incompatible'
  ).split(' '),
)
const DEEP = 4

interface Suspect {
  readonly call: string
  readonly path: string
  /** The type that has it, or the call, and its name. */
  readonly field: string
}

const suspectsOf = ({ call }: Operation, schemas: readonly Schema[]): Suspect[] => {
  const found: Suspect[] = []
  const visit = (schema: Schema, path: string, owner: string, above: readonly string[]): void => {
    const name = schema.$ref?.split('/').at(-1)
    if (name !== undefined && above.includes(name)) return
    const one = name === undefined ? schema : document.components.schemas[name]!
    const inside = name === undefined ? above : [...above, name]
    const type = name !== undefined && one.properties ? name : owner
    for (const form of [...(one.oneOf ?? []), ...(one.anyOf ?? [])]) visit(form, path, type, inside)
    if (one.items) visit(one.items, path, type, inside)
    for (const [field, value] of Object.entries(one.properties ?? {})) {
      const values = formsOf(value).flatMap(form => form.enum ?? (form.const === undefined ? [] : [form.const]))
      const at = path ? `${path}.${field}` : field
      const says = NAMES.test(field)
        ? values.length !== 1
        : values.length > 1 && values.some(each => WORDS.has(each as string))
      if (says) found.push({ call, path: at, field: `${type}.${field}` })
      if (at.split('.').length < DEEP) visit(value, at, type, inside)
    }
  }
  for (const schema of schemas) visit(schema, '', call, [])
  return found
}

/** Fields that look like it and do not say that the call failed: by type and name, with the reason. */
const NO_FAILURES: readonly (readonly [fits: RegExp, reason: string])[] = [
  [
    /^(?:Agents?AgentCard|AgentAttention|CardLoop|LandedPresence)\./,
    'how the conversation stands, which the call did not decide',
  ],
  [
    /^(?:AgentRoster\.held|Issue\.level|ReporterDay\.dropped|MarketEntry\.trust|PipelineJob\.\w+)$/,
    'what the call shows',
  ],
  [
    /^(?:Approval|ApprovalAttempt|Draft)\.(?:problem|error|outcome|status)$/,
    'how the item stands; of a yes its status says that it failed',
  ],
  [/^(?:Area|FolderProblem)\.problems?$/, 'the area is saved; its folders may come later'],
  [/^(?:\w+Preview|Replayed\w+|ShieldReplay|RulesTried)\./, 'a preview shows what would be'],
  [/^(?:BlockedFile|PublishedEntry)\./, 'the rest is published, and the answer lists what is left out'],
  [
    /^(?:ImportAnswer|ImportedSkills|RestoreReport|MergedArchive|UnpackedArchive)\.skipped$/,
    'the rest is in, and the answer lists what is left out',
  ],
  [
    /^(?:CheckResult|LoopIteration|Loop|WorkflowRun|WorkflowStepRun)\./,
    'what was started goes on, and has its own state',
  ],
  [/^Need\.status$/, 'what a person decided'],
  [/^LandedMessage(?:Draft|Step)\./, 'the work has landed; the draft of its message is beside it'],
  [/^RuleCondition\.outcome$/, 'what a rule waits for'],
  [
    /^\w+(?:Frame|Card)\.|^ConflictPath\.reason$/,
    'a frame of a run, which sandbox attach follows with exit codes of its own',
  ],
  [
    /^(?:LandResult\.(?:conflicts|held)|(?:Git|Rewrite|Continue)Result\.(?:code|conflicts|pushed))$/,
    'details; landed, or ok, says that it failed',
  ],
  [/^PublishedFile\.(?:committed|pushed)$/, 'details; ok says that it failed'],
  [/^UncommittedChanges\./, 'the commit is made; only the list after it could not be read'],
  [
    /^EndpointTest\.chat$|^CapabilityStatus\.code$|^GateVerdict\.step$/,
    'a detail; ok, the state, or the outcome says that it failed',
  ],
  [/^(?:DiskLink|ExitLink|VpnLink)\.state$/, 'the last event of a connection that is made'],
  [/^POST \/agent\/rewind\.dropped$/, 'the number of messages that were taken back'],
  [/^WebhookFired\.held$/, 'it waits for a person, as its settings say'],
]

t.test('each field of an answer that may say that its call failed is named by a table, or is known not to', t => {
  const used = new Set<RegExp>()
  for (const operation of changing) {
    const named = failuresIn(operation.group, operation.call)
    for (const { path, field } of suspectsOf(operation, answersOf(operation).schemas)) {
      if (named.some(each => each.field === path)) continue
      const known = NO_FAILURES.find(([fits]) => fits.test(field))
      if (known) used.add(known[0])
      else
        t.fail(
          `${operation.call}: ${path} (${field}) is in no table: name it in plugins/${operation.group}/cli.ts, or say `
            + 'here why not',
        )
    }
  }
  t.same(
    NO_FAILURES.filter(([fits]) => !used.has(fits)).map(([, reason]) => reason),
    [],
  )
  t.end()
})

// Each of them ends a command as a failure ---------------------------------------------------------------------------

const WHY = 'the far end hung up'

/** A value of a schema in which the field says that the call failed; undefined: it has no such field. */
const failingOf = (schema: Schema, path: readonly string[], { is }: CliFailure): unknown => {
  const [name, ...rest] = path
  for (const form of formsOf(schema)) {
    if (form.type === 'array') {
      const entry = form.items && failingOf(form.items, path, { field: '', ...(is && { is }) })
      if (entry !== undefined) return [entry]
      continue
    }
    const found = name === undefined ? undefined : form.properties?.[name]
    if (!found) continue
    const inner =
      rest.length > 0 ? failingOf(found, rest, { field: '', ...(is && { is }) }) : (is?.[0] ?? saying(found))
    if (inner === undefined) continue
    const fixed = Object.entries(form.properties ?? {}).flatMap(([key, each]) => {
      if (each.const !== undefined || each.enum?.length === 1) return [[key, each.const ?? each.enum![0]]]
      return ['reason', 'detail', 'problem', 'message'].includes(key)
        && formsOf(each).some(({ type }) => type === 'string')
        ? [[key, WHY]]
        : []
    })
    return { ...Object.fromEntries(fixed), [name!]: inner }
  }
  return undefined
}

const saying = (schema: Schema): unknown => {
  const [form] = formsOf(schema)
  if (form?.type === 'array') return [{ id: 'c-1', message: WHY }]
  if (form?.type === 'string') return WHY
  return form?.type === 'object' || form?.properties ? { status: 409, message: WHY } : undefined
}

const mayBeFalse = (schema: Schema): boolean =>
  formsOf(schema).some(
    ({ properties }) =>
      properties?.ok
      && formsOf(properties.ok).some(({ const: only, enum: all }) => only === undefined && all?.length !== 1),
  )

const cases = changing.flatMap(operation => {
  const { stream, schemas } = answersOf(operation)
  return failuresIn(operation.group, operation.call).flatMap(failure =>
    schemas
      .flatMap(schema => failingOf(schema, failure.field.split('.'), failure) ?? [])
      // `ok: true` alone cannot say so.
      .filter(() => failure.field !== 'ok' || schemas.some(schema => mayBeFalse(schema)))
      .map(answer => ({ operation, stream, failure, answer })),
  )
})

t.test('a command whose answer says that it failed exits with 1 or 5 and says it on standard error', async t => {
  t.ok(cases.length >= 45, `${cases.length} answers`)
  const now: { answer?: unknown; stream?: boolean } = {}
  const daemon = await fakeDaemon(t, (_, response) => {
    if (!now.stream) return json(response, 200, now.answer)
    streaming(response).end(wire('message', now.answer) + wire('done', {}))
    return undefined
  })
  for (const { operation, stream, failure, answer } of cases) {
    Object.assign(now, { answer, stream })
    const values = operation.fields.filter(({ inPath }) => inPath).map(({ name }) => `${name}=x`)
    const code = failure.refused ? 5 : 1
    const label = `${operation.call} ${JSON.stringify(answer)}`
    for (const flags of [[], ['--json']]) {
      const ran = await daemon.run(['call', operation.call, ...values, ...flags])
      t.equal(ran.code, code, label)
      t.match(ran.out, /\S/, label)
      const said = flags.length > 0 ? (JSON.parse(ran.err) as { message: string }).message : ran.err
      t.match(said, /\w+ \w+/, label)
      if (JSON.stringify(answer).includes(WHY) && failure.text === undefined) t.match(said, WHY, label)
    }
  }
})

t.test('what a verb of a group says was not done is on standard error, with the reason', async t => {
  const now: { answer?: unknown } = {}
  const daemon = await fakeDaemon(t, () => now.answer, { document })
  const failed = { ok: false, code: 'unreachable', reason: WHY, head: 'abc' }
  for (const [args, said] of [
    [['git', 'push', 'main'], 'did not push main'],
    [['git', 'push'], 'did not push'],
    [['git', 'fetch', 'origin'], 'did not fetch origin'],
    [['git', 'pull'], 'did not pull root'],
    [['git', 'stash-push', 'x'], 'did not stash'],
  ] as const) {
    now.answer = failed
    const { code, out, err } = await daemon.run([...args])
    t.same([code, err], [1, `sandbox: ${said}: ${WHY}\n`], args.join(' '))
    t.equal(out.trim(), '', args.join(' '))
    now.answer = { ok: true, head: 'abc' }
    t.match(await daemon.run([...args]), { code: 0, err: '' }, args.join(' '))
  }
})

t.test('a written verb fails with its call', async t => {
  const row = {
    id: 'desk',
    provider: 'endpoint/desk',
    kind: 'server',
    label: 'desk',
    protocol: 'ollama',
    models: 0,
    default: '',
  }
  const daemon = await fakeDaemon(t, () => ({
    ...row,
    hasKey: false,
    headerNames: [],
    status: 'unreachable',
    detail: WHY,
  }))
  const added = await daemon.run(['model', 'add', 'desk', '--protocol', 'ollama', '--url', 'http://127.0.0.1:9'])
  t.match(added, { code: 1, out: /^saved desk: unreachable, 0 models\nnext: /, err: `sandbox: ${WHY}\n` })
})
