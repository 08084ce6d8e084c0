// No failure disappears without a word: a handler answers it, logs it, or names why it may be ignored.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { ignored, warned } from '../sdk/ignored.js'
import { project } from './support/browser/page.js'
import { exactly } from './support/lists.js'

interface Source {
  readonly file: string
  readonly text: string
}

/** A function that does nothing with what it gets. */
const doesNothing = (node: ts.Node | undefined): boolean => {
  if (node === undefined || !(ts.isArrowFunction(node) || ts.isFunctionExpression(node))) return false
  return ts.isBlock(node.body) && node.body.statements.length === 0
}

/** What follows `.catch(` or an `error` event, and the handler of both. */
const handlerOf = (node: ts.Node): ts.Node | undefined => {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return undefined
  const [first, second] = node.arguments
  const name = node.expression.name.text
  if (name === 'catch') return first
  return /^(?:on|once)$/.test(name) && first && ts.isStringLiteral(first) && /error$/i.test(first.text)
    ? second
    : undefined
}

/** A `catch` block that is empty and says nothing either. */
const isSilent = (node: ts.Node, text: string): boolean =>
  ts.isCatchClause(node)
  && node.block.statements.length === 0
  && !/\/\/|\/\*/.test(text.slice(node.block.getStart(), node.block.end))

const breaches = ({ file, text }: Source): string[] => {
  if (!/\.catch\(|\bcatch\b|error'/.test(text)) return []
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (doesNothing(handlerOf(node)) || isSilent(node, text))
      found.push(
        `${file}:${source.getLineAndCharacterOfPosition(node.end).line + 1} ignores a failure and does not say why`,
      )
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

t.test('a failure is answered, logged or ignored for a reason that is named', t => {
  const files = globSync('{kernel,plugins,sdk,openapi}/**/*.{ts,tsx}', { cwd: project }).sort()
  const sources = files.map(file => ({ file, text: readFileSync(join(project, file), 'utf8') }))
  t.ok(sources.length > 1_000)
  t.same(sources.flatMap(breaches), [])
  t.end()
})

t.test('the rule finds handlers that do nothing', t => {
  const found = (text: string) => breaches({ file: 'x.ts', text })
  t.match(found('void work().catch(() => {})'), exactly(/^x\.ts:1 /))
  t.match(found('void work().catch(_ => {\n  // Never mind.\n})'), exactly(/^x\.ts:3 /))
  t.match(found("socket.once('error', () => {})"), exactly(/^x\.ts:1 /))
  t.match(found('try { work() } catch {}'), exactly(/^x\.ts:1 /))
  t.same(found("void work().catch(ignored('it has ended'))"), [])
  t.same(found("socket.on('error', error => log.warn(String(error)))"), [])
  t.same(found('try { work() } catch {\n  // It has ended already.\n}'), [])
  t.end()
})

t.test('a handler logs, but not when the daemon stops', t => {
  const lines: unknown[] = []
  const log = { warn: (...line: unknown[]) => void lines.push(line) }
  const stop = new AbortController()
  ignored('it is a test')()
  warned({ log }, 'the work')(new Error('first'))
  const handler = warned({ log, signal: stop.signal }, 'the work')
  handler(new Error('second'))
  stop.abort()
  handler(new Error('third'))
  t.same(lines, [
    ['the work failed', { error: 'Error: first' }],
    ['the work failed', { error: 'Error: second' }],
  ])
  t.end()
})
