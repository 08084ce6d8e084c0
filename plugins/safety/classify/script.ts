import type { CommandClass } from '../../settings/contract.js'
import { hostOf, isDestructiveSql, isLocalHost, isSecretPath } from './words.js'

/** What a script has, as far as its text says. */
export interface ScriptFacts {
  readonly classes: readonly CommandClass[]
  /** Shell lines that it runs. */
  readonly lines: readonly string[]
  /** Programs that it runs with their arguments. */
  readonly runs: readonly (readonly string[])[]
}

interface Token {
  readonly kind: 'name' | 'text' | 'sign'
  readonly value: string
}

const RUNS = new Set(
  (
    'exec execSync execFile execFileSync spawn spawnSync fork execa execaSync execaCommand system '
    + 'popen Popen run call check_call check_output getoutput getstatusoutput create_subprocess_shell '
    + 'create_subprocess_exec execvp execv execl qx $ sh bash shell'
  ).split(' '),
)
const FETCHES = new Set(
  (
    'fetch get post put patch request urlopen urlretrieve axios got WebSocket Request connect '
    + 'createConnection ajax head'
  ).split(' '),
)
const READS = new Set(
  (
    'readFile readFileSync open createReadStream read_text read_bytes load config readTextFile file ' + 'ReadFile'
  ).split(' '),
)
const REMOVES = new Set([
  'rm',
  'rmSync',
  'rmdir',
  'rmdirSync',
  'remove',
  'removeSync',
  'emptyDir',
  'removeAll',
  'RemoveAll',
])
const QUERIES = new Set(
  'query execute executemany exec raw executescript $executeRaw $queryRaw run sql unsafe'.split(' '),
)
const MOST_TOKENS = 50_000
const MOST_ARGUMENTS = 200

/** Reads the calls of a script in JavaScript, Python, Ruby, Perl or PHP, by its names, texts and brackets. */
export const scriptFacts = (text: string): ScriptFacts => {
  const tokens = tokensOf(text)
  const classes = new Set<CommandClass>()
  const lines: string[] = []
  const runs: string[][] = []
  for (let at = 0; at < tokens.length; at++) {
    const { kind, value } = tokens[at]!
    if (kind === 'text' && isDestructiveSql(value) && /\b(?:table|database|from|schema|truncate)\b/i.test(value))
      if (QUERIES.has(calleeBefore(tokens, at))) classes.add('database.destructive')
    if (kind !== 'name') continue
    // In zx and in Ruby the text follows without a bracket.
    const next = tokens[at + 1]
    if ((value === '$' || value === 'system' || value === 'exec') && next?.kind === 'text') lines.push(next.value)
    if (value === 'rmtree' || value === 'rm_rf') classes.add('files.destructive')
    if (value === 'environ' && tokens[at - 1]?.value === '.' && next?.value !== '[' && next?.value !== '.')
      classes.add('secrets.access')
    if (next?.value !== '(') continue
    const given = argumentsOf(tokens, at + 2)
    const texts = given.filter(one => one.kind === 'text').map(one => one.value)
    const [first] = texts
    if (RUNS.has(value) && first !== undefined) {
      const listed =
        given.some(one => one.value === '[') || (texts.length > 1 && /^(?:spawn|execv|execl|execFile|fork)/.test(value))
      if (listed || texts.length > 1) runs.push(texts)
      lines.push(first)
    }
    if (FETCHES.has(value) && first !== undefined) {
      const host = first.includes('://') ? hostOf(first) : undefined
      if (host !== undefined && !isLocalHost(host)) classes.add('network.outbound')
    }
    if (READS.has(value) && texts.some(isSecretPath)) classes.add('secrets.access')
    if (REMOVES.has(value)) {
      const names = new Set(given.filter(one => one.kind === 'name').map(one => one.value))
      if (names.has('recursive') || (/all$|emptyDir|^remove(?:Sync)?$/i.test(value) && tokens[at - 2]?.value !== 'os'))
        if (value !== 'remove' || tokens[at - 2]?.value === 'fs' || tokens[at - 2]?.value === 'fse')
          classes.add('files.destructive')
    }
    if (value === 'dropDatabase') classes.add('database.destructive')
  }
  return { classes: [...classes], lines, runs }
}

/** The name of the call whose first argument is here. */
const calleeBefore = (tokens: readonly Token[], at: number): string => {
  const opens = tokens[at - 1]?.value === '('
  const callee = opens ? tokens[at - 2] : tokens[at - 1]
  return callee?.kind === 'name' ? callee.value : ''
}

const argumentsOf = (tokens: readonly Token[], from: number): Token[] => {
  const given: Token[] = []
  for (let at = from, depth = 1; at < tokens.length && given.length < MOST_ARGUMENTS; at++) {
    const token = tokens[at]!
    if (token.kind === 'sign' && '([{'.includes(token.value)) depth++
    if (token.kind === 'sign' && ')]}'.includes(token.value) && --depth === 0) break
    given.push(token)
  }
  return given
}

const NAME = /[A-Za-z0-9_$]/

const tokensOf = (text: string): Token[] => {
  const tokens: Token[] = []
  for (let at = 0; at < text.length && tokens.length < MOST_TOKENS;) {
    const char = text[at]!
    if (char === '/' && text[at + 1] === '/' && text[at - 1] !== ':') at = endOf(text, '\n', at)
    else if (char === '/' && text[at + 1] === '*') at = endOf(text, '*/', at + 2)
    else if (char === '#' && text[at + 1] !== '{') at = endOf(text, '\n', at)
    else if (char === '"' || char === "'" || char === '`') {
      const { value, next } = textAt(text, at)
      tokens.push({ kind: 'text', value })
      at = next
    } else if (NAME.test(char)) {
      const from = at
      while (at < text.length && NAME.test(text[at]!)) at++
      tokens.push({ kind: 'name', value: text.slice(from, at) })
    } else {
      if (!/\s/.test(char)) tokens.push({ kind: 'sign', value: char })
      at++
    }
  }
  return tokens
}

const endOf = (text: string, mark: string, from: number): number => {
  const end = text.indexOf(mark, from)
  return end < 0 ? text.length : end + mark.length
}

const textAt = (text: string, from: number): { value: string; next: number } => {
  const quote = text[from]!
  const triple = quote !== '`' && text.startsWith(quote.repeat(3), from) ? quote.repeat(3) : undefined
  if (triple) {
    const end = text.indexOf(triple, from + 3)
    return { value: text.slice(from + 3, end < 0 ? undefined : end), next: end < 0 ? text.length : end + 3 }
  }
  let value = ''
  let at = from + 1
  while (at < text.length && text[at] !== quote) {
    if (text[at] === '\n' && quote !== '`') break
    if (text[at] === '\\') {
      const escaped = text[at + 1] ?? ''
      value += escaped === 'n' ? '\n' : escaped === 't' ? '\t' : escaped
      at += 2
    } else value += text[at++]
  }
  return { value, next: at + 1 }
}
