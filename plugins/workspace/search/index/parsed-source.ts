import type { Node } from 'web-tree-sitter'
import { DEFINITIONS, grammarFor, grammarName, type SymbolKind } from './languages.js'

/** Something that a file defines. */
export interface SourceSymbol {
  readonly name: string
  readonly kind: SymbolKind
  /** From 1. */
  readonly line: number
  readonly exported: boolean
  /** The name of the symbol around it. */
  readonly within?: string
}

/** How a name is used: called, imported, as a type, written, or read; `d` is its definition. */
export type UseKind = 'c' | 'i' | 't' | 'w' | 'r' | 'd'

/** A parsed source file. */
export interface ParsedSource {
  readonly symbols: readonly SourceSymbol[]
  /** The uses by name: `12c,14r`. */
  readonly uses: ReadonlyMap<string, string>
  /** Its imports, as written. */
  readonly imports: readonly string[]
  readonly branches: number
  /** The symbols are guesses, for want of a grammar. */
  readonly guessed: boolean
}

const PARSE_MS = 2_000
const MOST_SPOTS = 400
const MOST_NAME = 100
const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/gu
const BRANCH = /\b(?:if|for|while|case|catch|elif|except|elsif|unless|foreach|when)\b|&&|\|\||\?\?|\?(?=[^.:?)\],;])/g
const MODIFIER = 'export|pub|public|private|static|local|final|abstract|async|default'
const DEFINER = 'function|func|fn|def|class|struct|interface|trait|enum|type|module|object|sub|record'
const GUESSED = new RegExp(`^[ \\t]*(?:(?:${MODIFIER})[ \\t]+)*(${DEFINER})[ \\t]+([\\p{L}_$][\\p{L}\\p{N}_$]*)`, 'u')
const KEYWORDS = new Set(
  (
    'if else for while do return const let var function class interface type enum import export from as new this super '
    + 'try catch finally throw switch case break continue default async await yield static public private protected '
    + 'readonly extends implements in of typeof instanceof void null undefined true false def self pass None '
    + 'True False '
    + 'lambda with not and or is fn pub mut impl struct trait use mod match where func package go defer chan map range '
    + 'int float double bool boolean string number any never unknown object char long short byte unsigned signed'
  ).split(' '),
)

interface Range {
  readonly start: number
  readonly end: number
}

const KIND_WORDS: { readonly [word: string]: SymbolKind } = {
  function: 'fn',
  func: 'fn',
  fn: 'fn',
  def: 'fn',
  sub: 'fn',
  class: 'class',
  struct: 'class',
  object: 'class',
  record: 'class',
}

/** The start of the line with an offset; offsets must be passed in order. */
const lineCounter = (text: string) => {
  let [line, next] = [1, text.indexOf('\n')]
  return (offset: number): number => {
    while (next >= 0 && next < offset) {
      line++
      next = text.indexOf('\n', next + 1)
    }
    return line
  }
}

/** Whether an offset is in one of some ranges; offsets must be passed in order. */
const within = (ranges: readonly Range[]) => {
  let at = 0
  return (offset: number): boolean => {
    while (at < ranges.length && ranges[at]!.end <= offset) at++
    return at < ranges.length && ranges[at]!.start <= offset
  }
}

const useOf = (text: string, start: number, end: number): UseKind => {
  const after = /^[ \t]*(\(|=(?![=>])|[-+*/|&^%]=|\+\+|--|<)?/.exec(text.slice(end, end + 12))?.[1]
  if (after === '(') return 'c'
  const before = text.slice(Math.max(0, start - 14), start)
  if (/\bnew\s+$/.test(before)) return 'c'
  if (/(?:[:<|&]\s*|\b(?:extends|implements|as|satisfies)\s+|->\s*)$/.test(before) && !/[?]\s.*:\s*$/.test(before))
    return 't'
  return after && after !== '<' ? 'w' : 'r'
}

/** The names of a text outside comments and strings, with their positions. */
const usesOf = (text: string, silent: readonly Range[], imports: readonly Range[], defined: ReadonlySet<string>) => {
  const spots = new Map<string, string[]>()
  const [isSilent, isImport, lineAt] = [within(silent), within(imports), lineCounter(text)]
  for (const { 0: name, index } of text.matchAll(NAME)) {
    if (name.length > MOST_NAME || name.length < 2 || KEYWORDS.has(name) || isSilent(index)) continue
    const known = spots.get(name) ?? []
    if (known.length >= MOST_SPOTS) continue
    const line = lineAt(index)
    const kind = defined.has(`${line} ${name}`) ? 'd' : isImport(index) ? 'i' : useOf(text, index, index + name.length)
    if (!known.includes(`${line}${kind}`)) known.push(`${line}${kind}`)
    spots.set(name, known)
  }
  return new Map([...spots].map(([name, all]) => [name, all.join(',')]))
}

const countBranches = (text: string, silent: readonly Range[]): number => {
  const isSilent = within(silent)
  let count = 0
  for (const { index } of text.matchAll(BRANCH)) if (!isSilent(index)) count++
  return count
}

/** The targets of import statements: quoted texts, and names with `.` or `::`. */
const importsIn = (text: string, ranges: readonly Range[]): string[] => [
  ...new Set(
    ranges.flatMap(({ start, end }) => {
      const words = text.slice(start, Math.min(end, start + 4000))
      const quoted = [...words.matchAll(/['"<]([^'"<>\n]{1,300})['">]/g)].map(found => found[1]!)
      const python = /^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))/.exec(words)
      return quoted.length > 0 ? quoted : python ? [python[1] ?? python[2]!] : []
    }),
  ),
]

/** The node that names a definition; in C it is below its declarators. */
const nameNode = (node: Node): Node | undefined => {
  let at = node.childForFieldName('name') ?? (node.type === 'assignment' ? node.childForFieldName('left') : null)
  for (let below = node.childForFieldName('declarator'), depth = 0; !at && below && depth < 8; depth++) {
    if (/identifier$/.test(below.type)) at = below
    else below = below.childForFieldName('declarator')
  }
  return at ?? undefined
}

const TOP = new Set(['program', 'export_statement', 'module', 'source_file', 'translation_unit'])

/** Only non-local variables count. */
const isTopLevel = (node: Node): boolean => {
  const parent = node.parent
  const around = parent && !TOP.has(parent.type) ? parent.parent : parent
  return around !== null && TOP.has(around.type)
}

const isExported = (text: string, node: Node, name: Node, grammar: string): boolean => {
  const head = text.slice(node.startIndex, name.startIndex)
  if (grammar === 'rust') return /\bpub\b/.test(head)
  if (grammar === 'go') return /^\p{Lu}/u.test(name.text)
  if (grammar === 'python') return !name.text.startsWith('_')
  if (/script|tsx/.test(grammar))
    return node.parent?.type === 'export_statement' || node.parent?.parent?.type === 'export_statement'
  return !/\b(?:private|static)\b/.test(head)
}

const symbolsOf = (text: string, nodes: readonly Node[], grammar: string): SourceSymbol[] => {
  const around: { end: number; name: string }[] = []
  return nodes.flatMap(node => {
    const kind = DEFINITIONS[node.type]!
    if (kind === 'const' && !isTopLevel(node)) return []
    const name = nameNode(node)
    if (!name || name.text.length > MOST_NAME || !/^[\p{L}_$#][\p{L}\p{N}_$:.?!]*$/u.test(name.text)) return []
    while (around.length > 0 && around.at(-1)!.end <= node.startIndex) around.pop()
    const outer = around.at(-1)?.name
    around.push({ end: node.endIndex, name: name.text })
    const value = kind === 'const' ? node.childForFieldName('value')?.type : undefined
    return [
      {
        name: name.text,
        kind: value && /function/.test(value) ? 'fn' : kind,
        line: name.startPosition.row + 1,
        exported: isExported(text, node, name, grammar),
        ...(outer !== undefined && { within: outer }),
      },
    ]
  })
}

/** The apparent definitions of a text without a grammar. */
const guessed = (text: string): ParsedSource => {
  const symbols = text.split('\n').flatMap((line, at): SourceSymbol[] => {
    const [, word = '', name] = GUESSED.exec(line.slice(0, 300)) ?? []
    return name === undefined ? [] : [{ name, kind: KIND_WORDS[word] ?? 'type', line: at + 1, exported: true }]
  })
  const defined = new Set(symbols.map(({ name, line }) => `${line} ${name}`))
  return { symbols, uses: usesOf(text, [], [], defined), imports: [], branches: countBranches(text, []), guessed: true }
}

/** Texts that are not programs: their names are found only as words. */
const PROSE = /\.(?:md|mdx|rst|txt|adoc|html?|json|jsonc|ya?ml|toml|lock|csv|tsv|svg|xml|log|map|snap)$/i
const EMPTY: ParsedSource = { symbols: [], uses: new Map(), imports: [], branches: 0, guessed: false }

/** Reads the definitions, uses and imports of a source file. */
export const parseSource = async (path: string, text: string): Promise<ParsedSource> => {
  const named = grammarName(path)
  if (named === undefined) return PROSE.test(path) ? EMPTY : guessed(text)
  const { parser, query, name: grammar } = await grammarFor(named)
  const until = performance.now() + PARSE_MS
  const tree = parser.parse(text, null, { progressCallback: () => performance.now() > until })
  if (!tree) {
    parser.reset()
    return guessed(text)
  }
  try {
    const captures = query.captures(tree.rootNode)
    const ranges = (as: string): Range[] =>
      captures.filter(({ name }) => name === as).map(({ node }) => ({ start: node.startIndex, end: node.endIndex }))
    const silent = ranges('s')
    const imports = ranges('i')
    const nodes = captures.filter(({ name }) => name === 'd').map(({ node }) => node)
    const symbols = symbolsOf(text, nodes, grammar)
    const defined = new Set(symbols.map(({ name, line }) => `${line} ${name}`))
    return {
      symbols,
      uses: usesOf(text, silent, imports, defined),
      imports: importsIn(text, imports),
      branches: countBranches(text, silent),
      guessed: false,
    }
  } finally {
    tree.delete()
  }
}
