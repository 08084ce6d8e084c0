import { execFileSync } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, inGit, root, type Support } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'
import { commitAll, put } from '../../plugins/git/support.js'
import { NO_YES, YES } from './yes-table.js'
import { yesCases } from './yes-cases.js'

const GROUPS = [
  ...['share', 'outbox', 'history', 'git', 'workspace', 'system', 'agent', 'agents', 'settings', 'approvals'],
  ...['automations', 'needs', 'areas', 'personas', 'skills', 'secrets', 'activity', 'usage'],
]

interface Schema {
  readonly $ref?: string
  readonly properties?: { readonly [name: string]: unknown }
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}
interface Operation {
  readonly requestBody?: { readonly content: { readonly [type: string]: { readonly schema: Schema } } }
  readonly parameters?: readonly { readonly name: string }[]
}

const document = JSON.parse(readFileSync(join(root, '..', 'openapi/openapi.json'), 'utf8')) as {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
}
const operations = new Map<string, Operation>(
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => [`${method.toUpperCase()} ${path}`, one] as const),
  ),
)

const fieldsOf = (schema: Schema = {}): string[] => {
  if (schema.$ref !== undefined) {
    const keys = schema.$ref.split('/').slice(1)
    return fieldsOf(keys.reduce<never>((at, key) => at[key] as never, document as never))
  }
  const parts = [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]
  return [...Object.keys(schema.properties ?? {}), ...parts.flatMap(fieldsOf)]
}

const inputOf = (call: string): string[] => {
  const { requestBody, parameters = [] } = operations.get(call)!
  const bodies = Object.values(requestBody?.content ?? {}).flatMap(({ schema }) => fieldsOf(schema))
  return [...bodies, ...parameters.map(({ name }) => name)]
}

t.test('every call that changes something names what was seen, or is none that needs to', t => {
  const mutating = [...operations.keys()].filter(call => !/^(?:GET|HEAD|OPTIONS) /.test(call)).sort()
  const others = Object.values(NO_YES).flat()
  const known = [...Object.keys(YES), ...others]
  t.same(
    mutating.filter(call => !known.includes(call)),
    [],
    'a new call gets its line in yes-table.ts',
  )
  t.same(
    known.filter((call, at) => !mutating.includes(call) || known.indexOf(call) !== at),
    [],
    'a line is about one call of the document',
  )
  for (const [call, { by, read: shown, test }] of Object.entries(YES)) {
    for (const field of by) t.ok(inputOf(call).includes(field), `${call} takes ${field}`)
    t.ok(operations.has(shown), `${call} is shown by ${shown}`)
    if (test === undefined) continue
    t.ok(readFileSync(join(root, '..', 'test', test), 'utf8').includes(call), `${test} has a case of ${call}`)
  }
  t.end()
})

/** A workspace with a remote, whose branch is one commit behind, and a tag. */
const world = async (t: Test): Promise<Support> => {
  const daemon = await daemonWith(t, GROUPS, { files: { 'docs/a.md': 'a\n' } })
  const { workspace, client } = daemon
  const origin = join(workspace, 'origin.git')
  execFileSync('git', ['init', '-q', '--bare', '-b', 'main', origin])
  appendFileSync(join(workspace, '.git/info/exclude'), 'origin.git\n')
  inGit(workspace, 'remote', 'add', 'origin', './origin.git')
  inGit(workspace, 'push', '-q', '-u', 'origin', 'main')
  put(workspace, { 'docs/more.md': 'more\n' })
  commitAll(workspace, 'second')
  inGit(workspace, 'tag', 'v1')
  await runTurn(client, 'c', 'say what was seen')
  await runTurn(client, 'copy', 'write theirs.md\n| one', { isolated: true })
  return daemon
}

t.test('a yes to what changed since is refused, and changes nothing', async t => {
  const daemon = await world(t)
  const cases = yesCases(t)
  const named = Object.entries(YES).filter(([, { by, test }]) => test === undefined && by[0] !== 'id')
  for (const [call] of named)
    t.ok(
      cases.some(([name]) => name === call),
      `${call} has a case`,
    )
  for (const [call, what, { look, between, state, after, answered }] of cases) {
    const yes = await look(daemon)
    await between(daemon)
    const before = await state(daemon)
    const refused = answered ? await yes().then(() => undefined) : await refusalOf(yes)
    const about = `${call}: ${what}`
    if (refused) t.equal(refused.status, 409, `${about}: ${refused.message}`)
    t.same(await state(daemon), before, `${about}: nothing was changed`)
    await after?.(daemon)
    inGit(daemon.workspace, 'reset', '-q', '--hard')
    inGit(daemon.workspace, 'clean', '-q', '-f', '-d', '-e', '.sandbox', '-e', 'backup.tar.gz')
  }
})

t.test('what an id names stays as it was shown, whatever happens to where it came from', async t => {
  const daemon = await world(t)
  const { client } = daemon
  const raised = { conversationId: 'c', kind: 'information', title: 'Which region?', why: 'It is asked.', dedupe: 'r' }
  const { id } = (await client.call('POST /needs', raised as never)) as { id: string }
  const again = { ...raised, title: 'The password of the database?' }
  t.match(await client.call('POST /needs', again as never), { id })
  t.match(await client.call('GET /needs/{id}', { id }), { title: 'Which region?' })
})
