// Makes a group that builds, is documented, served and tested: `npm run new -- NAME ["What it is."]`, with
// `--into FOLDER` in another copy of the project. It writes contract, examples, plugin, manifest and test, and adds the
// group where its types are listed (`sdk/api.ts`); everything else finds groups by their manifests.
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { format } from 'oxfmt'

const LONGEST = 40
const RESERVED = new Set(['call', 'calls', 'help', 'kernel', 'open', 'schema', 'x'])
const SCOPES = ['editor', 'read', 'drive', 'land']
const ACCESS_LINES = 'test/fixtures/access-lines.json'

const { values, positionals } = parseArgs({ options: { into: { type: 'string' } }, allowPositionals: true })
const [name = '', summary] = positionals
const project = values.into ?? '.'
const at = path => join(project, path)
const read = path => readFileSync(at(path), 'utf8')
const glob = pattern => globSync(pattern, { cwd: project })

const refuse = sentence => {
  console.error(sentence)
  process.exit(1)
}

const words = name.split('-')
const pascal = words.map(word => word.charAt(0).toUpperCase() + word.slice(1)).join('')
const camel = pascal.charAt(0).toLowerCase() + pascal.slice(1)
const label = words.join(' ').replace(/^./, first => first.toUpperCase())
const about = summary ?? `The ${words.join(' ')} of the sandbox.`
const types = { calls: `${pascal}Calls`, list: `${pascal}List`, entry: `${pascal}Entry`, contract: `${camel}Contract` }

// What it refuses ----------------------------------------------------------------------------------------------------

if (!/^[a-z]+(?:-[a-z]+)*$/.test(name) || name.length > LONGEST)
  refuse(
    `expected npm run new -- NAME, where NAME is words of lower-case letters with hyphens, at most ${LONGEST} `
      + `characters, found ${JSON.stringify(name)}`,
  )
if (!/^\S.*[.!?]$/.test(about)) refuse(`expected a sentence with a full stop that says what ${name} is, found ${about}`)
if (RESERVED.has(name)) refuse(`${name} is a word of the project itself: choose another name`)
if (existsSync(at(`manifests/${name}.json`)) || existsSync(at(`plugins/${name}`)))
  refuse(`there is a group ${name} already: choose another name, or add calls to it`)

const segmentOf = call => /^[A-Z]+ \/([^/{]+)/.exec(call)?.[1]
const owners = new Map(
  [...read('openapi/kernel.ts').matchAll(/'([A-Z]+ \/[\w.-]+)'/g)].map(([, call]) => [segmentOf(call), 'the kernel']),
)
for (const file of glob('manifests/*.json')) {
  const { name: group, routes = {} } = JSON.parse(read(file))
  for (const call of Object.keys(routes)) owners.set(segmentOf(call), `group ${group}`)
}
if (owners.has(name))
  refuse(`/${name} is a path of ${owners.get(name)} already: choose another name, or add calls to that group`)

/** The written contract may name the call already: then the group has it as written. */
const lines = JSON.parse(read(ACCESS_LINES))
const route = `GET /${name}`
const written = lines.find(({ call }) => call === route)
if (written && (written.id.split('.')[0] !== name || written.floor === 'open'))
  refuse(`${route} is ${written.id} of the written contract: choose another name, or make the group it belongs to`)
const access = written ?? { call: route, id: `${name}.list`, floor: 'viewer', tokens: ['read', 'drive', 'land'] }

const taken = glob('{kernel,plugins,sdk,openapi}/**/*.ts').flatMap(file =>
  [...read(file).matchAll(/^export (?:declare )?(?:const|class|interface|type|(?:async )?function\*?) (\w+)/gm)]
    .filter(([, exported]) => Object.values(types).includes(exported))
    .map(([, exported]) => `${exported} of ${file}`),
)
if (taken.length) refuse(`its types would have the names of ${taken.join(' and ')}: choose another name`)

// What it writes -----------------------------------------------------------------------------------------------------

const contract = `import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'

/** One of the entries. */
export interface ${types.entry} {
  id: string
}
/** The entries of a list. */
export interface ${types.list} {
  entries: ${types.entry}[]
}

/** ${about} */
export interface ${types.calls} {
  /** List the entries by id; \`query\` is looked for in their ids. */
  '${route}'(input: { query?: string & tags.MaxLength<100> }): ${types.list}
}

export const ${types.contract}: Contract<${types.calls}> = {
  schema: () => typia.json.application<${types.calls}>(),
  request: typia.misc.createValidatePrune<Requests<${types.calls}>>(),
  reply: () => typia.createValidate<Replies<${types.calls}>>(),
}
`

const examples = `import type { Examples } from '../../sdk/contract.js'
import type { ${types.calls} } from './contract.js'

/** One use of each call. */
export const examples = (): Examples<${types.calls}> => ({
  '${route}': { input: { query: 'a' }, output: { entries: [{ id: 'a-1' }] } },
})
`

const plugin = `import type { Contract, Host } from '../../sdk/index.js'
import { ${types.contract}, type ${types.calls}, type ${types.entry} } from './contract.js'
import { examples } from './examples.js'

export const contract: Contract<${types.calls}> = { ...${types.contract}, examples }

/** Lists what the group keeps. */
export const activate = async (host: Host): Promise<void> => {
  await host.serve(${types.contract}, {
    '${route}': async ({ query = '' }) => {
      const kept = await host.store.all<${types.entry}>()
      const entries = kept.map(([id]) => ({ id })).filter(({ id }) => id.includes(query))
      return { entries: entries.sort((a, b) => (a.id < b.id ? -1 : 1)) }
    },
  })
}
`

const cli = `import type { CliTable } from '../../sdk/cli-table.js'
import type { ${types.calls} } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<${types.calls}> = {
  bare: 'list',
  verbs: {
    list: {
      call: '${route}',
      args: [],
      rows: 'entries',
      columns: { id: 'id' },
      none: 'no ${words.join(' ')}',
      examples: ['--query a'],
    },
  },
}
`

const tokens = access.tokens.map(scope => `"${scope}"`).join(', ')
const manifest = `{
  "publisher": "sandbox",
  "name": "${name}",
  "version": "1.0.0",
  "label": "${label}",
  "summary": ${JSON.stringify(about)},
  "entry": "plugins/${name}/plugin.js",
  "calls": [],
  "libraries": [],
  "domains": [],
  "programs": [],
  "permissions": { "daemon": [], "late": [] },
  "routes": {
    "${route}": { "id": "${access.id}", "role": "${access.floor}", "tokens": [${tokens}] }
  }
}
`

const wrong = SCOPES.filter(scope => !access.tokens.includes(scope))
const scopes = wrong.length
  ? `t.test('a token of a scope that the manifest does not name lists nothing', async t => {
  const daemon = await daemonWith(t, ['${name}'])
  for (const scope of [${wrong.map(scope => `'${scope}'`).join(', ')}] as const) {
    const { token } = await daemon.token(scope)
    t.equal((await fetch(\`\${daemon.url}/${name}\`, { headers: { 'x-sandbox-control': token } })).status, 403, scope)
  }
})

`
  : ''
const test = `import t from 'tap'
import { daemonWith } from '../../support/daemon.js'

t.test('without a credential nothing is listed', async t => {
  const daemon = await daemonWith(t, ['${name}'])
  t.equal((await fetch(\`\${daemon.url}/${name}\`)).status, 401)
})

${scopes}t.test('a query that is too long is refused', async t => {
  const daemon = await daemonWith(t, ['${name}'])
  t.equal((await daemon.fetch(\`/${name}?query=\${'x'.repeat(101)}\`)).status, 400)
})

t.test('the list is empty at first', async t => {
  const daemon = await daemonWith(t, ['${name}'])
  t.same(await daemon.client.call('${route}', {}), { entries: [] })
})
`

const api = read('sdk/api.ts')
const imports = api.split('\n').filter(line => line.startsWith('import type') && line.includes("'../plugins/"))
const own = `import type { ${types.calls} } from '../plugins/${name}/contract.js'`
const from = line => line.split(' from ')[1]
const next = imports.find(line => from(line) > from(own)) ?? "import type { Kernel, KernelEvents } from './kernel.js'"
const registered = api
  .replace(next, `${own}\n${next}`)
  .replace(/(export interface Api\s+extends[^{]*?)(,\s*Kernel \{\})/, `$1, ${types.calls}$2`)
if (registered.split(types.calls).length !== 3)
  refuse('expected sdk/api.ts to list groups in `Api`, found another form')

const files = {
  [`plugins/${name}/contract.ts`]: contract,
  [`plugins/${name}/examples.ts`]: examples,
  [`plugins/${name}/plugin.ts`]: plugin,
  [`plugins/${name}/cli.ts`]: cli,
  [`manifests/${name}.json`]: manifest,
  [`test/plugins/${name}/${name}.test.ts`]: test,
  'sdk/api.ts': registered,
}
if (!written) {
  const rows = [...lines, access].sort((a, b) => (a.call < b.call ? -1 : 1)).map(line => `  ${JSON.stringify(line)}`)
  files[ACCESS_LINES] = `[\n${rows.join(',\n')}\n]\n`
}
// A verb of the same name makes the group's calls too.
for (const file of glob('sdk/cli/verbs/**/*.ts')) {
  const text = read(file)
  const line = `  name: '${name}',\n`
  if (text.includes(line) && !/^ {2}group: /m.test(text.slice(text.indexOf(line)).split('\n')[1]))
    files[file] = text.replace(line, `${line}  group: '${name}',\n`)
}

const style = JSON.parse(readFileSync('.ci/format.json', 'utf8'))
const formatted = async (path, text) => {
  const { code, errors } = await format(path, text, style)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`)
  return code
}
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(at(path)), { recursive: true })
  writeFileSync(at(path), path.endsWith('.ts') ? await formatted(path, text) : text)
  console.log(`wrote ${path}`)
}
console.log(`next: npm run openapi, then npm test -- ${name}`)
