import ts from 'typescript'
import { join } from 'node:path'

/** The modules of the package, as they are imported, with the file that each comes from. */
const MODULES = [
  ['sandbox-daemon/sdk', 'sdk/extension.ts', 'Types for the backend and the page of an extension.'],
  ['sandbox-daemon/sdk/testing', 'sdk/testing.ts', 'Tests of a backend without a daemon.'],
  ['sandbox-daemon/sdk/client', 'sdk/client.ts', 'A client of the daemon, for programs and browsers.'],
  [
    'sandbox-daemon/sdk/page',
    'sdk/page.ts',
    'What stands between a console and the page of an extension in its frame.',
  ],
] as const

/** Types whose members are the calls of the sandbox, which have a document of their own. */
const ELSEWHERE = new Set(['Api'])

/** One exported name with its sentence and its declaration. */
interface Described {
  readonly name: string
  readonly text: string
  readonly code: string
}

/** A page that describes everything that the package exports, from the docstrings; throws where one is missing. */
export const sdkReference = (project: string): string => {
  const { config } = ts.readConfigFile(join(project, 'sdk/tsconfig.json'), path => ts.sys.readFile(path)) as {
    config: object
  }
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, join(project, 'sdk'))
  const program = ts.createProgram(fileNames, options)
  const checker = program.getTypeChecker()
  const bare: string[] = []
  const described = new Map<string, string>()
  const symbols = new Set<ts.Symbol>()
  const sections = MODULES.map(([module, file, summary]) => {
    const source = program.getSourceFile(join(project, file))!
    const names = checker
      .getExportsOfModule(checker.getSymbolAtLocation(source)!)
      .map(symbol => {
        symbols.add(resolved(checker, symbol))
        return describe(checker, symbol)
      })
      .sort((one, other) => (one.name < other.name ? -1 : 1))
    for (const { name, text } of names) if (text === '') bare.push(`${module}: ${name}`)
    const parts = names.map(({ name, text, code }) => {
      const known = described.get(name)
      described.set(name, known ?? module)
      return known === undefined
        ? `### ${name}\n\n${text}\n\n\`\`\`ts\n${code}\n\`\`\`\n`
        : `### ${name} of ${module.split('/').at(-1)}\n\nThe same as in \`${known}\`.\n`
    })
    return `## ${module}\n\n${summary}\n\n${parts.join('\n')}`
  })
  const named = namedBy(checker, project, symbols)
  for (const { name, text } of named) if (text === '') bare.push(name)
  if (bare.length > 0) throw new Error(`without a sentence: ${bare.join(', ')}`)
  return `# The packages for authors

Written by \`npm run openapi\` from the sources. The calls of \`Api\` are described in
\`openapi/openapi.json\`, and at \`/reference\` of a daemon.

${sections.join('\n')}
## Types that these name

They are not exported: a type of an input or of a part of it is inferred.

${named.map(part).join('\n')}`
}

const part = ({ name, text, code }: Described): string => `### ${name}\n\n${text}\n\n\`\`\`ts\n${code}\n\`\`\`\n`

const resolved = (checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol =>
  symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol

/** The types of the project that the described ones name, and those that these name; sorted. */
const namedBy = (checker: ts.TypeChecker, project: string, described: ReadonlySet<ts.Symbol>): Described[] => {
  const found = new Set<ts.Symbol>(described)
  const isOurs = (node: ts.Declaration): boolean => {
    const { fileName } = node.getSourceFile()
    return fileName.startsWith(`${project}/`) && !fileName.includes('/node_modules/')
  }
  for (const symbol of found) {
    if (ELSEWHERE.has(symbol.name)) continue
    for (const node of (symbol.declarations ?? []).flatMap(typesIn)) {
      const named = checker.getSymbolAtLocation(node)
      const type = named && resolved(checker, named)
      const [declaration] = type?.declarations ?? []
      if (!type || !declaration || !isOurs(declaration)) continue
      if (ts.isInterfaceDeclaration(declaration) || ts.isTypeAliasDeclaration(declaration)) found.add(type)
    }
  }
  return [...found]
    .filter(symbol => !described.has(symbol) && !ELSEWHERE.has(symbol.name))
    .map(symbol => describe(checker, symbol))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The names of types in a declaration, without what a function does. */
const typesIn = (declaration: ts.Node): ts.Node[] => {
  const names: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node)) return
    if (ts.isTypeReferenceNode(node)) names.push(node.typeName)
    if (ts.isExpressionWithTypeArguments(node)) names.push(node.expression)
    ts.forEachChild(node, visit)
  }
  visit(declaration)
  return names
}

const describe = (checker: ts.TypeChecker, exported: ts.Symbol): Described => {
  const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim()
  const declaration = symbol.declarations![0]!
  return { name: exported.name, text, code: codeOf(checker, declaration, exported.name) }
}

const codeOf = (checker: ts.TypeChecker, declaration: ts.Declaration, name: string): string => {
  if (ELSEWHERE.has(name)) return `interface ${name} { … }`
  if (ts.isVariableDeclaration(declaration)) {
    const type = checker.getTypeAtLocation(declaration)
    return `const ${name}: ${checker.typeToString(type, declaration, ts.TypeFormatFlags.NoTruncation)}`
  }
  if (ts.isClassDeclaration(declaration)) {
    const [base] = declaration.heritageClauses ?? []
    return `class ${name}${base ? ` ${base.getText()}` : ''}`
  }
  const text = declaration.getText().replace(/^export (declare )?/, '')
  // Limits are checked by the daemon, and are noise to a reader.
  return text.replace(/ & tags\.\w+<(?:'[^']*'|[^<>])*>/g, '')
}
