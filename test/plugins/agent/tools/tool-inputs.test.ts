import t from 'tap'
import type { ToolName } from '../../../../plugins/agent/tools/tool.js'
import { offeredSchema } from '../../../../plugins/agent/tools/toolbox.js'
import { tools } from '../../../../plugins/agent/tools/tools.js'
import { exactly } from '../../../support/lists.js'
import { misfits, type Schema } from '../../../support/schema.js'

/** An input with every field, for each tool. */
const INPUTS: { readonly [name in ToolName]: { readonly [field: string]: unknown } } = {
  Read: { path: 'src/main.ts', offset: 4, limit: 20 },
  List: { path: 'src', depth: 2 },
  Search: { query: 'main', mode: 'find', dir: 'src', include: '*.ts', literal: true, caseSensitive: true },
  Write: { path: 'a.txt', content: '' },
  Append: { path: 'a.txt', content: 'more\n' },
  Edit: { path: 'a.txt', old: 'one', new: 'two', all: true },
  Delete: { path: 'a.txt' },
  Move: { from: 'a.txt', to: 'b.txt' },
  Shell: { command: 'ls', cwd: 'src', timeoutMs: 1000, background: false },
  Process: { action: 'output', id: 'sh-1', since: 12, waitMs: 1000 },
  Code: { source: 'console.log(1)', timeoutMs: 1000 },
  Fetch: { url: 'http://localhost/x', method: 'POST', headers: { accept: 'text/plain' }, body: 'x' },
  Browser: { action: 'fill', page: 'p1', ref: 'e4', text: 'ada' },
  Connect: { card: 'github', why: 'To open a pull request.' },
  Pay: {
    url: 'https://data.example.org/x',
    method: 'POST',
    headers: { accept: 'text/plain' },
    body: 'x',
    wallet: 'main',
    why: 'To read it.',
  },
  Handover: { surface: 'browser', message: 'Sign in, please.' },
  Todo: { items: [{ content: 'test', status: 'in_progress', activeForm: 'testing' }] },
  Ask: {
    questions: [
      {
        question: 'which one?',
        header: 'Choice',
        multiSelect: true,
        options: [{ label: 'a', description: 'the first', preview: 'A' }, { label: 'b' }],
      },
    ],
  },
  Plan: { text: 'first this, then that' },
  Delegate: { description: 'look', prompt: 'look at it', background: true, agentType: 'explorer', model: 'm' },
  Join: { ids: ['c1'], timeoutMs: 1000 },
  Skill: { name: 'release', file: 'scripts/release.sh' },
  Need: {
    kind: 'decision',
    title: 'Which one?',
    why: 'Both fit.',
    fields: [
      {
        key: 'one',
        label: 'The one to take',
        type: 'choice',
        required: true,
        options: [
          { value: 'a', label: 'The first', description: 'It is older.' },
          { value: 'b', label: 'The other' },
        ],
        secretKey: 'ONE',
        hint: 'Look at both.',
      },
    ],
    card: 'mcp',
    provider: 'example',
    blocking: true,
    expiresAt: 4_000_000_000_000,
    dedupe: 'one',
  },
  Withdraw: { id: 'n-1' },
  Propose: {
    id: 'a-1',
    kind: 'post',
    post: {
      platform: 'webhook',
      target: 'https://example.org',
      title: 'News',
      content: 'It is out.',
      media: ['a.png'],
    },
    action: { key: 'chat.send', summary: 'Say it', args: { text: 'It is out.' }, capability: 'chat' },
    actsAs: 'writer',
    scheduledAt: 4_000_000_000_000,
    why: 'It is built.',
    tellAgent: true,
  },
}

/** Another input of a tool, with the fields that exclude some of the first one. */
const OTHER_INPUTS: { readonly [name: string]: { readonly [field: string]: unknown } } = {
  Edit: { path: 'a.txt', from: '1:9f3c', to: '2:9f3c', new: 'two' },
  Browser: { action: 'goto', page: 'p1', url: 'https://example.org/', account: 'shop' },
}
/** Fields that exclude all of these, or that are needed where no other is. */
const ALONE: { readonly [name: string]: readonly string[] } = {
  Edit: ['after', 'edits', 'patch'],
  Browser: ['key', 'values', 'paths'],
  Process: ['text'],
}
const NEEDED: { readonly [name: string]: (input: { readonly [field: string]: unknown }) => readonly string[] } = {
  Edit: () => ['old', 'new'],
  Process: () => ['id'],
  Browser: ({ action }) => (action === 'goto' ? ['url'] : ['ref', 'text']),
}

const schemaOf = (name: string) => tools[name]!.schema().input as Schema

t.test('every tool has a description for models, and so has each field of its input', t => {
  t.same(Object.keys(tools).sort(), Object.keys(INPUTS).sort())
  for (const [name, tool] of Object.entries(tools)) {
    const schema = tool.schema()
    t.equal(schema.name, name)
    t.match(schema.description, /^[A-Z].*\.$/s, `${name} says what it does`)
    t.equal(schema.input.type, 'object')
    const fields = { ...INPUTS[name as ToolName], ...OTHER_INPUTS[name] }
    t.same(Object.keys(schema.input.properties!).sort(), [...Object.keys(fields), ...(ALONE[name] ?? [])].sort(), name)
    for (const [field, { description }] of Object.entries(schema.input.properties!))
      t.match(description, /\S/, `${name} describes ${field}`)
    t.notMatch(JSON.stringify(schema), /"\$(?:ref|defs)"/, 'types stand where they are used')
  }
  const sent = Object.values(tools).map(tool => JSON.stringify(offeredSchema(tool, false)))
  const characters = sent.reduce((sum, text) => sum + text.length, 0)
  t.ok(characters <= 16_000, `${characters} characters, about 4,000 tokens, go with every request`)
  t.end()
})

t.test('an input with every field fits its schema and passes unchanged, and undeclared fields are left out', t => {
  for (const [name, input] of [...Object.entries(INPUTS), ...Object.entries(OTHER_INPUTS)]) {
    const schema = schemaOf(name)
    t.same(misfits(schema, input, name), [])
    const given = { ...input, undeclared: 1 }
    t.same(tools[name]!.check(given), input, name)
    t.same(given, { ...input, undeclared: 1 }, 'the original input is unchanged')
    const all = { ...INPUTS[name as ToolName], ...input }
    const needed = NEEDED[name]?.(input).map(field => [field, all[field]]) ?? []
    const fields = schema.required ?? []
    const required = Object.fromEntries([...fields.map(field => [field, input[field]]), ...needed])
    t.same(JSON.parse(JSON.stringify(tools[name]!.check(required))), required, `${name} with the required fields only`)
  }
  t.end()
})

t.test('a field of another type, a missing field and a value other than an object are refused by name', t => {
  const refused = (name: string, input: unknown, path: string) =>
    t.throws(
      () => tools[name]!.check(input),
      { reason: 'invalid', message: `${name} takes ${path}: expected `, detail: { errors: exactly({ path }) } },
      `${name} ${JSON.stringify(input)}`,
    )
  for (const [name, input] of Object.entries(INPUTS)) {
    for (const wrong of [undefined, null, 'text', 3, []]) refused(name, wrong, 'input')
    for (const field of Object.keys(input)) {
      refused(name, { ...input, [field]: null }, field)
      const other = field === 'post' || field === 'action' ? 'text' : { a: 1 }
      refused(name, { ...input, [field]: other }, field === 'headers' ? 'headers.a' : field)
    }
    for (const field of schemaOf(name).required ?? []) refused(name, { ...input, [field]: undefined }, field)
  }
  t.end()
})

t.test('a one-time code goes into a field of a page, not into an address', t => {
  for (const action of ['open', 'goto'])
    t.throws(() => tools['Browser']!.check({ action, url: 'https://example.org/?c={{code:shop}}' }), {
      message: /^Browser takes url: expected an address without a one-time code/,
    })
  t.ok(tools['Browser']!.check({ action: 'fill', ref: 'e1', text: '{{code:shop}}' }))
  t.end()
})

t.test('values beyond a limit are refused with the limit and the value', t => {
  const table: [name: ToolName, change: object, message: RegExp][] = [
    ['Read', { path: '' }, /^Read takes path: expected text, not empty, found empty text$/],
    [
      'Read',
      { path: 'x'.repeat(5000) },
      /^Read takes path: expected text, at most 4096 characters, found "x{80}" of 5000 characters$/,
    ],
    ['Read', { offset: 0 }, /^Read takes offset: expected a number, from 1, found 0$/],
    ['Read', { limit: 1.5 }, /^Read takes limit: expected a number, whole, from 0, found 1\.5$/],
    ['List', { depth: 9 }, /^List takes depth: expected a number, up to 8, found 9$/],
    ['Write', { content: '\ud800' }, /^Write takes content: expected text, well-formed Unicode, found /],
    ['Fetch', { method: 'CONNECT' }, /^Fetch takes method: expected one of DELETE, GET, .*PUT, found "CONNECT"$/],
    ['Todo', { items: [{ content: 'a', status: 'done' }] }, /^Todo takes items\.0\.status: expected one of /],
    ['Ask', { questions: [] }, /^Ask takes questions: expected a list, at least 1 items, found a list of 0 items$/],
    ['Join', { ids: [] }, /^Join takes ids: expected a list, at least 1 items, found a list of 0 items$/],
  ]
  for (const [name, change, message] of table)
    t.throws(() => tools[name]!.check({ ...INPUTS[name], ...change }), { message }, `${name} ${Object.keys(change)[0]}`)
  t.end()
})
