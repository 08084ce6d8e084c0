import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Language, Parser, Query } from 'web-tree-sitter'

/** A kind of symbol, as `sym` narrows by it. */
export type SymbolKind = 'fn' | 'class' | 'type' | 'const'

/** A language that is read by a grammar. */
export interface Grammar {
  readonly name: string
  readonly parser: Parser
  /** Captures definitions as `d`, comments and texts as `s`, imports as `i`. */
  readonly query: Query
}

const GRAMMARS: { readonly [extension: string]: string } = {
  ts: 'typescript',
  mts: 'typescript',
  cts: 'typescript',
  tsx: 'tsx',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  jsx: 'javascript',
  py: 'python',
  pyi: 'python',
  go: 'go',
  rs: 'rust',
  java: 'java',
  c: 'cpp',
  h: 'cpp',
  cc: 'cpp',
  cpp: 'cpp',
  cxx: 'cpp',
  hpp: 'cpp',
  cs: 'c-sharp',
  rb: 'ruby',
  php: 'php',
  sh: 'bash',
  bash: 'bash',
  ps1: 'powershell',
}

/** Node types that define something, in all grammars; each grammar has some of them. */
export const DEFINITIONS: { readonly [type: string]: SymbolKind } = {
  function_declaration: 'fn',
  generator_function_declaration: 'fn',
  function_definition: 'fn',
  function_item: 'fn',
  function_signature: 'fn',
  function_signature_item: 'fn',
  function_statement: 'fn',
  method_definition: 'fn',
  method_declaration: 'fn',
  constructor_declaration: 'fn',
  method: 'fn',
  singleton_method: 'fn',
  local_function_statement: 'fn',
  class_declaration: 'class',
  abstract_class_declaration: 'class',
  class_definition: 'class',
  class_specifier: 'class',
  class_statement: 'class',
  class: 'class',
  struct_item: 'class',
  struct_specifier: 'class',
  struct_declaration: 'class',
  record_declaration: 'class',
  interface_declaration: 'type',
  type_alias_declaration: 'type',
  enum_declaration: 'type',
  enum_item: 'type',
  enum_specifier: 'type',
  trait_item: 'type',
  trait_declaration: 'type',
  type_item: 'type',
  type_spec: 'type',
  type_definition: 'type',
  union_item: 'type',
  internal_module: 'type',
  mod_item: 'type',
  module: 'type',
  namespace_definition: 'type',
  namespace_declaration: 'type',
  variable_declarator: 'const',
  const_item: 'const',
  static_item: 'const',
  const_spec: 'const',
  var_spec: 'const',
  const_element: 'const',
  macro_definition: 'fn',
  assignment: 'const',
}

const FRAGMENTS = ['string_fragment', 'string_content', 'heredoc_body']
const TEXTS = ['string', 'string_literal', 'raw_string_literal', 'interpreted_string_literal', 'encapsed_string']
const SILENT = ['comment', 'line_comment', 'block_comment', 'regex', 'char_literal', 'rune_literal']
const IMPORTS = [
  'import_statement',
  'import_declaration',
  'import_from_statement',
  'use_declaration',
  'using_directive',
  'preproc_include',
  'namespace_use_declaration',
]

/** The grammar for a path, by its extension; undefined: none. */
export const grammarName = (path: string): string | undefined =>
  GRAMMARS[path.slice(path.lastIndexOf('.') + 1).toLowerCase()]

const loaded = new Map<string, Promise<Grammar>>()
let started: Promise<void> | undefined

/** Loads a grammar, once. */
export const grammarFor = (name: string): Promise<Grammar> => {
  const known = loaded.get(name)
  if (known) return known
  const loading = (async () => {
    await (started ??= Parser.init())
    const folder = dirname(createRequire(import.meta.url).resolve('@vscode/tree-sitter-wasm/package.json'))
    const language = await Language.load(join(folder, 'wasm', `tree-sitter-${name}.wasm`))
    const parser = new Parser()
    parser.setLanguage(language)
    return { name, parser, query: new Query(language, patternsOf(language)) }
  })()
  loaded.set(name, loading)
  return loading
}

const patternsOf = (language: Language): string => {
  const has = (type: string) => language.idForNodeType(type, true) !== null
  const fragments = FRAGMENTS.filter(has)
  const capture = (types: readonly string[], as: string) => types.filter(has).map(type => `(${type}) @${as}`)
  return [
    ...capture(Object.keys(DEFINITIONS), 'd'),
    ...capture([...SILENT, ...(fragments.length > 0 ? fragments : TEXTS)], 's'),
    ...capture(IMPORTS, 'i'),
  ].join('\n')
}
