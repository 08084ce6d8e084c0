import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Schema } from '../../../sdk/cli/calls/document.js'
import { VERBS } from '../../../sdk/cli/program.js'
import { folderOf, makeWorkspace, root } from '../../support/daemon.js'
import { going, sandbox } from './cli-process.js'
import { answerOf, formsOf, publishedGroups } from './published.js'

const FIXTURE = join(root, '..', 'test', 'fixtures', 'cli-json.json')
const RENEW = 'if the change is meant, renew it with SANDBOX_RENEW=cli-json npm test -- cli-json, and look at the diff'

/** The fields that each verb prints with --json, as one text a verb. */
interface Printed {
  [verb: string]: string
}
const fixture = JSON.parse(readFileSync(FIXTURE, 'utf8')) as { written: Printed; groups: Printed }

/** The fields of an answer, and those of the entries of its lists. */
const fieldsOf = (schema: Schema, depth = 2): string[] =>
  formsOf(schema).flatMap(form => {
    if (form.type === 'array') return fieldsOf(form.items ?? {}, depth).map(field => `[].${field}`)
    return Object.entries(form.properties ?? {}).flatMap(([name, each]) => {
      const lists = depth > 1 ? formsOf(each).filter(({ type }) => type === 'array') : []
      return [name, ...lists.flatMap(list => fieldsOf(list, depth - 1).map(inner => `${name}${inner}`))]
    })
  })

const line = (fields: Iterable<string>): string => [...new Set(fields)].sort().join(' ')

const ofGroups = (): Printed =>
  Object.fromEntries(
    publishedGroups.flatMap(({ group, commands }) =>
      commands.flatMap(({ name, operation }) => {
        const answer = answerOf(operation)
        return answer ? [[`${group} ${name}`, line(fieldsOf(answer.schema))] as const] : []
      }),
    ),
  )

/** The fields of what was printed. */
const printedFields = (value: unknown, depth = 2): string[] => {
  if (Array.isArray(value)) return value.flatMap(each => printedFields(each, depth)).map(field => `[].${field}`)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, each]) => [
    name,
    ...(Array.isArray(each) && depth > 1 ? printedFields(each, depth - 1).map(inner => `${name}${inner}`) : []),
  ])
}

/** Commands of written verbs, in this order, on a new sandbox. */
const WRITTEN: readonly (readonly string[])[] = [
  ['run', 'write a.txt\n| hello', '--isolated', '--conversation', 'c-1'],
  ['agents'],
  ['transcript', 'c-1'],
  ['diff', 'c-1'],
  ['land', 'c-1'],
  ['queue', 'c-1'],
  ['rename', 'c-1', 'A title'],
  ['fork', 'c-1', 'say hi', '--as', 'c-2', '--detach'],
  ['archive', 'c-1'],
  ['archive', '--list'],
  ['members'],
  ['areas', 'write', 'docs', '.'],
  ['areas'],
  ['areas', 'show', 'docs'],
  ['areas', 'delete', 'docs'],
  ['sessions'],
  ['token', 'create', '--label', 'ci', '--scope', 'read'],
  ['token'],
  ['secrets', 'set-store', 'vault', '--unlock', 'file'],
  ['secret', 'set', 'API_TOKEN'],
  ['secret'],
  ['secret', 'remove', 'API_TOKEN'],
  ['models'],
  ['model'],
  ['account'],
  ['agent'],
  ['extension'],
  ['terminal', 'list'],
  ['browser'],
  ['bundle', 'list'],
  ['activity', '--limit', '1'],
  ['logs'],
  ['usage'],
  ['machine'],
  ['wall'],
  ['network'],
  ['completion', 'bash'],
]

t.test('the fields that --json prints are those of the fixture', async t => {
  const state = folderOf(t)
  const workspace = join(state, 'workspace')
  makeWorkspace(workspace)
  const env = { XDG_STATE_HOME: state }
  await going(t, ['serve', '--workspace', workspace, '--port', '0'], { env }).until(/ready at/)
  const written: Printed = {}
  for (const args of WRITTEN) {
    const { code, out, err } = await sandbox([...args, '--json'], { env, input: 'value' })
    t.equal(code, 0, `${args.join(' ')}: ${err}`)
    const name = args
      .filter(word => /^(?:--)?[a-z]+$/.test(word))
      .slice(0, 2)
      .join(' ')
    const values = out
      .split('\n')
      .filter(Boolean)
      .map(each => JSON.parse(each) as unknown)
    written[name] = line(values.flatMap(value => printedFields(value)))
  }
  const printed = { written, groups: ofGroups() }
  if (process.env.SANDBOX_RENEW === 'cli-json') writeFileSync(FIXTURE, `${JSON.stringify(printed, undefined, 1)}\n`)
  else
    for (const kind of ['written', 'groups'] as const)
      t.strictSame(printed[kind], fixture[kind], `test/fixtures/cli-json.json: ${RENEW}`)
})

t.test('every verb of this program can print JSON', t => {
  for (const { name, flags, hidden } of VERBS)
    if (!hidden && !['serve', 'script-agent', 'acp', 'mcp'].includes(name)) t.ok('json' in flags, name)
  t.end()
})
