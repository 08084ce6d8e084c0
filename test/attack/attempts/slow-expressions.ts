import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import ts from 'typescript'

/** A regular expression of the product, as it is written, and the file that it is in. */
export interface Expression {
  readonly text: string
  readonly file: string
}

/** Every literal of a regular expression in the product, each once. */
export const expressions = (): Expression[] => {
  const found = new Map<string, Expression>()
  for (const top of ['kernel', 'sdk', 'plugins'])
    for (const name of readdirSync(join(process.cwd(), top), { recursive: true, encoding: 'utf8' })) {
      if (!/\.tsx?$/.test(name)) continue
      const file = join(top, name)
      const kind = name.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS
      const source = ts.createSourceFile(
        file,
        readFileSync(join(process.cwd(), file), 'utf8'),
        ts.ScriptTarget.Latest,
        false,
        kind,
      )
      const walk = (node: ts.Node): void => {
        if (ts.isRegularExpressionLiteral(node) && !found.has(node.text))
          found.set(node.text, { text: node.text, file })
        ts.forEachChild(node, walk)
      }
      walk(source)
    }
  return [...found.values()]
}

const UNITS = [
  ...['a', 'A', '0', '0.', ' ', '\t', '\n', '\r\n', '-', '_', '.', '/', '\\', '"', "'", '<', '>', '{', '}', '(', ')'],
  ...['[', ']', '*', '`', '#', '=', ':', ';', ',', '@', '!', '~', '|', '%', '&', '$', '^', '?', '+', 'a ', 'a.', 'a-'],
  ...['a=', 'a/', '../', 'a:', '"a', '(a', '[a', '<a', 'é', '\u200b', '* ', 'a,', 'x=y ', '--a ', '{{', 'a@'],
]

/** Strings on which expressions of this form are slow if any are: much of one thing, and then something else. */
const attempts = ({ text }: Expression, length: number): string[] => {
  const words = [...new Set(text.slice(1, text.lastIndexOf('/')).match(/[A-Za-z0-9]{2,}/g))].slice(0, 4)
  const around = [...['', 'a', '<', '"', '['].map(before => [before, '\u0001']), [words[0] ?? '', '\u0001'], ['', '']]
  return [...UNITS, ...words, ...words.map(word => `${word} `)].flatMap(unit =>
    around.map(([before = '', after = '']) => before + unit.repeat(Math.ceil(length / unit.length)) + after),
  )
}

const SLOWEST = `(() => {
  let [worst, at] = [0, '']
  for (const text of texts) {
    expression.lastIndex = 0
    const began = now()
    if (expression.global) text.replace(expression, '')
    else expression.exec(text)
    const took = now() - began
    if (took > worst) [worst, at] = [took, text]
  }
  return { worst, at }
})()`

/** The milliseconds that an expression takes for the worst of some texts; it is given up after `most`. */
const slowest = ({ text }: Expression, texts: readonly string[], most: number): { worst: number; at: string } => {
  // The texts are of this file and the expression of the source: no code of others runs.
  const expression = `const expression = ${text};`
  try {
    const around = { texts, now: () => performance.now() }
    return runInNewContext(expression + SLOWEST, around, { timeout: most }) as { worst: number; at: string }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
    return { worst: Infinity, at: texts[0] ?? '' }
  }
}

/** What an expression takes for the worst of its attempts; a long one is made only of one that is slow when short. */
export const slowestOf = (expression: Expression): { readonly ms: number; readonly at: string } => {
  const short = slowest(expression, attempts(expression, 2_000), 20_000)
  if (short.worst < 4) return { ms: 0, at: '' }
  const unit = short.at.slice(1, -1)
  const long = short.at.slice(0, 1) + unit.repeat(8) + short.at.slice(-1)
  return { ms: slowest(expression, [long], 5_000).worst, at: `${short.at.slice(0, 12)}…${short.at.slice(-2)}` }
}
