import { existsSync, globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { parseManifest } from '../../kernel/manifest.js'
import { isRoute } from '../../sdk/contract.js'
import { misfits, OPERATIONS, resolved, TAGS } from '../support/schema.js'
import { readTables } from './tables.js'

interface Verb {
  readonly call: string
  readonly fill?: (input: object) => { readonly [field: string]: unknown }
}
interface Verbs {
  readonly cli: { readonly bare?: string; readonly verbs: { readonly [verb: string]: Verb } }
}

const manifests = globSync('manifests/!(schema).json').map(file => parseManifest(readFileSync(file, 'utf8'), file))
const readme = readFileSync('README.md', 'utf8')
/** The pages, and the parts and data that they share. */
const pages = globSync('plugins/console/web/{pages,ui,data,run}/**/*.{ts,tsx}').map(file => readFileSync(file, 'utf8'))

/** The calls that the document lists under a group, whoever serves them. */
const callsOf = (tag: string): readonly string[] =>
  OPERATIONS.filter(({ tags }) => tags.includes(tag)).map(({ call }) => call)

/** The values that a verb adds by itself and that its call does not take. */
const wrongFill = ({ call, fill }: Verb): string[] => {
  const { parameters = [], body } = OPERATIONS.find(operation => operation.call === call) ?? {}
  const shape = body && resolved(body)
  const fields = Object.assign(
    {},
    ...(shape?.oneOf?.map(each => resolved(each)) ?? [shape ?? {}]).map(({ properties }) => properties),
  )
  return Object.entries(fill?.({}) ?? {}).flatMap(([name, value]) => {
    const schema = parameters.find(parameter => parameter.name === name)?.schema ?? fields[name]
    if (value === undefined) return []
    return schema ? misfits(schema, value, `${call}: ${name}`) : [`${call} has no field ${name}`]
  })
}

for (const [label = ''] of readTables().groups.filter(([name = '']) => TAGS.includes(name)))
  t.test(`${label} has its guide, its verbs and a page`, async t => {
    const found = manifests.find(manifest => manifest.label === label)
    if (!found) return t.fail('no manifest has this label')
    const { name, routes } = found
    const guide = `plugins/${name}/README.md`
    const text = existsSync(guide) ? readFileSync(guide, 'utf8') : ''
    t.match(text, /^# .+\n\n\S/, 'a guide with a title and a first sentence')
    t.ok(readme.includes(`](${guide})`), 'the README leads to the guide')
    t.match(text, /npx sandbox |`sandbox /, 'the guide names a command')
    const { cli } = (await import(pathToFileURL(`dist/plugins/${name}/cli.js`).href)) as Verbs
    const calls = new Set([...callsOf(label), ...Object.keys(routes).filter(isRoute)])
    t.same(
      Object.values(cli.verbs).filter(({ call }) => !calls.has(call)),
      [],
      'its verbs are calls of the group',
    )
    t.ok(Object.keys(cli.verbs).length > 0, 'it has verbs')
    t.same(Object.values(cli.verbs).flatMap(wrongFill), [], 'what its verbs add is valid')
    t.ok(cli.bare === undefined || cli.bare in cli.verbs, 'without a verb, one of them')
    t.ok(
      pages.some(page => [...calls].some(call => page.includes(`'${call}'`))),
      'a page makes a call of it',
    )
  })
