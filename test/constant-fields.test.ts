import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { resolved, type Schema } from './support/schema.js'

/** The group whose code serves calls that another group publishes. */
const SERVED_BY: { readonly [group: string]: readonly string[] } = {
  agents: ['agents', 'agent'],
  workspace: ['workspace', 'git'],
}
const COUNTED = 'it is counted up by its name'
const ELSEWHERE = 'the value comes from another group or an extension, as a whole'

/** Fields that look the same in each answer, by the words of a finding, and why they stay. */
const REASONS: { readonly [finding: string]: string } = {
  'automations.catalog: placeholder is always https://www.example.org': ELSEWHERE,
  'diffs.rendered: notes is always []': ELSEWHERE,
  'diffs.rendered: truncated is always false': ELSEWHERE,
  'providers.list: accounts is always 0': ELSEWHERE,
  'safety.get: available is always false': ELSEWHERE,
  'issues.list: open is always 0': COUNTED,
  'issues.reporters: dropped is always 0': COUNTED,
  'settings.savings: tokens is always 0': COUNTED,
  'shield.replay: added is always 0': COUNTED,
  'shield.replay: dropped is always 0': COUNTED,
  'shield.replay: reported is always 0': COUNTED,
  'issues.saveReporter: dropped is always 0': COUNTED,
  'safety.replay: count is always 1': COUNTED,
  'shield.replay: hints is always []': COUNTED,
  'issues.get: os is never there': 'it is read by its name',
  ...Object.fromEntries(
    ['members', 'grant', 'removeMember', 'leave'].flatMap(call => [
      [`system.${call}: members is always []`, 'the kernel has them; whoever may not see them gets none'],
      [`system.${call}: invitations is always []`, 'the kernel has them; whoever may not see them gets none'],
    ]),
  ),
  'system.info: contract is always 1': 'the version of the contract',
  'system.browserPage: width is always 1280': 'pictures of pages have one size',
  'system.browserPage: height is always 800': 'pictures of pages have one size',
}

interface Published {
  readonly paths?: {
    readonly [path: string]: {
      readonly [method: string]: {
        readonly operationId: string
        readonly parameters?: readonly { readonly name?: string }[]
        readonly requestBody?: { readonly content?: { readonly [type: string]: { readonly schema: Schema } } }
        readonly responses: {
          readonly [status: string]: { readonly content?: { readonly [type: string]: { readonly schema: Schema } } }
        }
      }
    }
  }
}

interface Shown {
  readonly name: string
  readonly required: boolean
  /** Its type has one value. */
  readonly single: boolean
}

/** Every field of a type, each type once. */
const fieldsOf = (schema: Schema | undefined, seen = new Set<string>()): readonly Shown[] => {
  if (!schema) return []
  if (schema.$ref !== undefined) {
    if (seen.has(schema.$ref)) return []
    seen.add(schema.$ref)
  }
  const { properties = {}, required = [], items, additionalProperties, oneOf = [] } = resolved(schema)
  const inner = [items, typeof additionalProperties === 'object' ? additionalProperties : undefined, ...oneOf]
  return [
    ...Object.entries(properties).flatMap(([name, field]) => {
      const shape = resolved(field)
      const single = shape.const !== undefined || shape.enum?.length === 1
      return [{ name, required: required.includes(name), single }, ...fieldsOf(field, seen)]
    }),
    ...inner.flatMap(one => fieldsOf(one, seen)),
  ]
}

/** The literal values that code gives a name, and whether it gives it others too. */
interface Given {
  readonly literals: Set<string>
  varies: boolean
}

const literalOf = (node: ts.Expression): string | undefined => {
  if (ts.isAsExpression(node) || ts.isSatisfiesExpression(node) || ts.isParenthesizedExpression(node))
    return literalOf(node.expression)
  if (ts.isStringLiteralLike(node) || ts.isNumericLiteral(node)) return node.text
  if (node.kind === ts.SyntaxKind.TrueKeyword || node.kind === ts.SyntaxKind.FalseKeyword) return node.getText()
  if (ts.isArrayLiteralExpression(node) && node.elements.length === 0) return '[]'
  return ts.isObjectLiteralExpression(node) && node.properties.length === 0 ? '{}' : undefined
}

const isAssigned = (node: ts.Node): node is ts.BinaryExpression =>
  ts.isBinaryExpression(node)
  && node.operatorToken.kind >= ts.SyntaxKind.FirstAssignment
  && node.operatorToken.kind <= ts.SyntaxKind.LastAssignment

const namedBy = (node: ts.Node): ts.Node | undefined => {
  if (isAssigned(node)) return ts.isPropertyAccessExpression(node.left) ? node.left.name : undefined
  return ts.isShorthandPropertyAssignment(node)
    || ts.isPropertySignature(node)
    || ts.isPropertyDeclaration(node)
    || ts.isGetAccessor(node)
    || ts.isParameter(node)
    || ts.isMethodDeclaration(node)
    ? node.name
    : undefined
}

/** What the code of a file gives to each name. */
const givenIn = (file: string): ReadonlyMap<string, Given> => {
  const names = new Map<string, Given>()
  const of = (name: string): Given => {
    const given = names.get(name) ?? { literals: new Set(), varies: false }
    names.set(name, given)
    return given
  }
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node) && (ts.isIdentifier(node.name) || ts.isStringLiteral(node.name))) {
      const literal = literalOf(node.initializer)
      if (literal === undefined) of(node.name.text).varies = true
      else of(node.name.text).literals.add(literal)
    }
    const named = namedBy(node)
    if (named && ts.isIdentifier(named)) of(named.text).varies = true
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.ESNext, true))
  return names
}

const SAID_ONLY = /(?:^|\/)(?:[\w-]*contract|examples|cli)\.ts$|\/examples\//
const files = globSync('{plugins,sdk,kernel}/**/*.ts').filter(
  file => !SAID_ONLY.test(file) && !file.startsWith('plugins/console/'),
)
const house = new Map(files.map(file => [file, givenIn(file)]))
const everywhere = [...house.values()]

const documents = globSync('openapi/groups/*.json')
  .sort()
  .map(file => {
    const { paths = {} } = JSON.parse(readFileSync(file, 'utf8')) as Published
    return { group: basename(file, '.json'), operations: Object.values(paths).flatMap(Object.values<Operation>) }
  })
type Operation = NonNullable<Published['paths']>[string][string]

/** What a caller gives comes back as it was given. */
const taken = new Set(
  documents.flatMap(({ operations }) =>
    operations.flatMap(({ parameters = [], requestBody }) => [
      ...parameters.flatMap(({ name = [] }) => name),
      ...fieldsOf(requestBody?.content?.['application/json']?.schema).map(({ name }) => name),
    ]),
  ),
)

/** The fields of an answer that code never gives a value, or one alone. */
const constantFields = (group: string, { operationId, responses }: Operation): string[] => {
  const own = (SERVED_BY[group] ?? [group]).flatMap(name =>
    [...house].flatMap(([file, given]) => (file.startsWith(`plugins/${name}/`) ? [given] : [])),
  )
  const [, answer] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? []
  const open = fieldsOf(answer?.content?.['application/json']?.schema).filter(
    ({ name, single }) => !single && !taken.has(name),
  )
  return open.flatMap(({ name, required }) => {
    const given = own.flatMap(each => each.get(name) ?? [])
    const literals = new Set(given.flatMap(each => [...each.literals]))
    if (given.some(({ varies }) => varies) || literals.size > 1) return []
    // A field that may be absent says something by being there.
    if (literals.size === 1) return required ? [`${operationId}: ${name} is always ${[...literals][0]}`] : []
    return everywhere.some(each => each.has(name)) ? [] : [`${operationId}: ${name} is never there`]
  })
}

t.test('no field of an answer is the same in each, or never there', t => {
  const found = new Set(
    documents
      .filter(({ group }) => group !== 'shared' && group !== 'kernel')
      .flatMap(({ group, operations }) => operations.flatMap(operation => constantFields(group, operation))),
  )
  t.same(
    [...found].filter(finding => !(finding in REASONS)),
    [],
  )
  t.end()
})
