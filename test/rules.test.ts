import { existsSync, globSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import { parseManifest } from '../kernel/manifest.js'
import type { PluginManifest } from '../kernel/manifest.js'
import { isRoute } from '../sdk/contract.js'
import type { Contract, ContractSchema } from '../sdk/contract.js'
import { exactly } from './support/lists.js'

/** How long code may be, without blank lines and comments. */
const LINES = {
  file: 400,
  kernelFile: 300,
  folders: {
    kernel: 1163,
    'kernel/auth': 1486,
    'kernel/config': 205,
    'kernel/extensions': 300,
    'kernel/http': 1458,
    'kernel/http/sockets': 261,
    'kernel/logs': 250,
    'kernel/storage': 465,
    'kernel/streams': 600,
  } as Record<string, number>,
}
/** Where `any` is part of a type's meaning: a contract of whatever calls, a process of either kind. */
const ANY = /^sdk\/(?:contract|wire)\.ts$/

interface Source {
  readonly file: string
  readonly text: string
}
interface Import {
  readonly target: string
  readonly type: boolean
  readonly dynamic: boolean
}

const load = (pattern: string): Promise<Source[]> =>
  Promise.all(
    globSync(pattern)
      .sort()
      .map(async file => ({ file, text: await readFile(file, 'utf8') })),
  )

const code = await load('{kernel,plugins,sdk,openapi}/**/*.{ts,tsx}')
const tests = await load('test/**/*.ts')
const manifests = await Promise.all(
  (await load('manifests/*.json'))
    .filter(({ file }) => !file.endsWith('schema.json'))
    .map(async ({ file, text }) => parseManifest(text, file)),
)
const contracts = await Promise.all(
  manifests.map(async manifest => {
    const { contract } = (await import(pathToFileURL(`${process.cwd()}/dist/${manifest.entry}`).href)) as {
      contract: Contract
    }
    return { manifest, schema: contract.schema() }
  }),
)

// Reading sources ----------------------------------------------------------------------------------------------------

/** Answers for a source that was read before what was answered then: many rules read each file. */
const once = <T>(read: (source: Source) => T): ((source: Source) => T) => {
  const answers = new WeakMap<Source, T>()
  return source => {
    if (!answers.has(source)) answers.set(source, read(source))
    return answers.get(source)!
  }
}

/** Every node of a file, in order. */
const nodesOf = once(({ file, text }): ts.Node[] => {
  const nodes: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    nodes.push(node)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true))
  return nodes
})

const literal = (node: ts.Node | undefined): string | undefined =>
  node && ts.isStringLiteralLike(node) ? node.text : undefined

/** The source of a compiled file that an import names. */
const sourceOf = (file: string): string => {
  const named = file.replace(/\.js$/, '.ts')
  return WEB.test(named) && existsSync(`${named}x`) ? `${named}x` : named
}

/** What a file imports, re-exports, or names in a type; a path counts from the project. */
const importsOf = once((source): Import[] =>
  nodesOf(source).flatMap((node): Import[] => {
    const found = ts.isImportDeclaration(node)
      ? { from: literal(node.moduleSpecifier), type: node.importClause?.isTypeOnly === true }
      : ts.isExportDeclaration(node)
        ? { from: literal(node.moduleSpecifier), type: node.isTypeOnly }
        : ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)
          ? { from: literal(node.argument.literal), type: true }
          : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
            ? { from: literal(node.arguments[0]), type: false, dynamic: true }
            : ts.isExternalModuleReference(node)
              ? { from: literal(node.expression), type: false }
              : undefined
    if (found?.from === undefined) return []
    const { from, type, dynamic = false } = found
    const target = from.startsWith('.') ? sourceOf(posix.join(dirname(source.file), from)) : from
    return [{ target, type, dynamic }]
  }),
)

// Rules: each answers what breaches it -------------------------------------------------------------------------------

/** What runs in the browser, and the libraries that it is bundled with. */
const WEB = /^plugins\/console\/web\//
const WEB_LIBRARIES =
  /^(?:preact(?:\/hooks)?|@preact\/signals(?:-core)?|marked|@(?:lezer|codemirror|xterm|tanstack)\/[\w-]+)$/
/** Its data and rows work without a page, so that they are tested without a browser. */
const WEB_PAGELESS = /^plugins\/console\/web\/(?:data|run)\//

const KERNEL_LIBRARIES = /^(?:koa|@koa\/router|koa-body|keyv|@keyv\/[\w-]+|jose|typia|pino|ws)$/
const CONTRACTS = /^plugins\/[\w-]+\/contract\.ts$/
/** The verbs of a group. */
const CLI_TABLES = /^plugins\/[\w-]+\/cli\.ts$/
/** A contract of a part of a group: it may hold validators too. */
const PART_CONTRACTS = /^plugins\/[\w-]+\/(?:[\w-]+\/)+contract\.ts$/

/** What a file may import as values, and additionally as types. */
const reachOf = (file: string, libraries: readonly string[]): { values: RegExp[]; types: RegExp[] } => {
  const own = `${file.split('/').slice(0, 2).join('/')}/`
  if (/^sdk\/(?:contract|refusal|client|api|cli-table)\.ts$/.test(file))
    return { values: [/^sdk\/(?!node\/)/], types: file === 'sdk/api.ts' ? [CONTRACTS] : [] }
  // The client program draws what contracts describe, makes the sample's repository without a git of the machine,
  // packs extensions, and serves editors and assistants.
  if (file.startsWith('sdk/cli/'))
    return {
      values: [
        /^sdk\//,
        /^node:/,
        /^(?:isomorphic-git|tar-stream|@agentclientprotocol\/sdk|@modelcontextprotocol\/server(?:\/stdio)?)$/,
      ],
      types: [CONTRACTS],
    }
  // What programs of people show of a group: they read it without the group.
  if (CLI_TABLES.test(file)) return { values: [], types: [/^sdk\/(?:cli-table|api)\.ts$/, CONTRACTS] }
  if (file === 'sdk/extension.ts') return { values: [/^sdk\//], types: [/^plugins\/extensions\/contract\.ts$/] }
  // Several groups unpack archives.
  if (file.startsWith('sdk/node/archives/'))
    return { values: [/^sdk\//, /^node:/, /^(?:tar-stream|yauzl)$/], types: [] }
  if (file === 'sdk/node/files/media-type.ts') return { values: [/^sdk\//, /^node:/, /^mime-types$/], types: [] }
  // Two groups speak with models, in the form of the packages for it.
  if (file === 'sdk/node/models/model-call.ts') return { values: [], types: [/^@ai-sdk\/openai-compatible$/] }
  // Examples import the package as their readers do.
  if (file.startsWith('sdk/examples/')) return { values: [/^node:/], types: [/^sandbox-daemon\/sdk$/] }
  if (file.startsWith('sdk/')) return { values: [/^sdk\//, /^node:/], types: [/^typia$/] }
  if (CONTRACTS.test(file))
    return {
      values: [/^typia$/, /^sdk\/types\.ts$/],
      types: [/^sdk\//, CONTRACTS, new RegExp(`^${own}`)],
    }
  if (WEB.test(file)) {
    return {
      values: [
        WEB_PAGELESS.test(file) ? WEB_PAGELESS : WEB,
        /^sdk\/(?:client|conditions|ignored|refusal|route-pattern|page|unapproved-digest|log-line|unseen|vaulted)\.ts$/,
        WEB_PAGELESS.test(file) ? /^(?:@preact\/signals-core|marked|@lezer\/[\w-]+)$/ : WEB_LIBRARIES,
        // The build collects the guides of the groups under this name.
        ...(file === 'plugins/console/web/pages/help/help-page.tsx' ? [/^guides:all$/] : []),
      ],
      types: [/^sdk\/(?!node\/)/, CONTRACTS, WEB],
    }
  }
  if (file.startsWith('plugins/')) {
    return {
      values: [
        new RegExp(`^${own}`),
        /^sdk\/(?:index|conditions|log-line|unseen|vaulted)\.ts$/,
        /^sdk\/node\//,
        /^node:/,
        ...libraries.map(name => new RegExp(`^${name}$`)),
        ...(PART_CONTRACTS.test(file) ? [/^typia$/] : []),
      ],
      types: [/^sdk\//, /^typia$/, CONTRACTS],
    }
  }
  if (file.startsWith('kernel/')) return { values: [/^kernel\//, /^sdk\//, /^node:/, KERNEL_LIBRARIES], types: [] }
  const generates = file === 'openapi/generate.ts'
  return {
    values: [
      /^openapi\//,
      /^sdk\/(?:build|contract|refusal)\.ts$/,
      /^openapi3-ts$/,
      /^node:/,
      ...(file === 'openapi/sdk-reference.ts' ? [/^typescript$/] : []),
      ...(file === 'openapi/permissions-page.ts' ? [/^sdk\/node\/extension\/permission-kinds\.ts$/] : []),
      ...(generates ? [/^kernel\/(?:loader|manifest)\.ts$/, /^typia$/] : []),
    ],
    types: [/^kernel\/manifest\.ts$/],
  }
}

const importBreaches = (
  sources: readonly Source[],
  groups: readonly Pick<PluginManifest, 'name' | 'libraries'>[],
): string[] =>
  sources.flatMap(source => {
    const libraries = groups.find(({ name }) => source.file.startsWith(`plugins/${name}/`))?.libraries ?? []
    const { values, types } = reachOf(source.file, libraries)
    return importsOf(source)
      .filter(({ target, type }) => ![...values, ...(type ? types : [])].some(may => may.test(target)))
      .map(({ target, type }) => `${source.file} imports ${type ? 'types of ' : ''}${target}`)
  })

/** Files that browsers load and that import what browsers lack. */
const browserBreaches = (sources: readonly Source[]): string[] => {
  const byName = new Map(sources.map(source => [source.file, source]))
  return ['contract', 'refusal', 'client', 'api', 'page', 'route-pattern', 'log-line', 'unseen', 'cli-table'].flatMap(
    name => {
      const seen = new Set([`sdk/${name}.ts`])
      const bad: string[] = []
      for (const file of seen) {
        const source = byName.get(file)
        for (const { target, type, dynamic } of source ? importsOf(source) : []) {
          if (type || dynamic) continue
          if (target.startsWith('sdk/')) seen.add(target)
          else bad.push(`sdk/${name}.ts reaches ${target} through ${file}`)
        }
      }
      return bad
    },
  )
}

/** Import cycles of values and types, each reported once. */
const circles = (sources: readonly Source[]): string[] => {
  const edges = new Map(
    sources.map(source => [
      source.file,
      importsOf(source)
        .filter(({ dynamic }) => !dynamic)
        .map(({ target }) => target),
    ]),
  )
  const done = new Set<string>()
  const found: string[] = []
  const walk = (file: string, way: readonly string[]): void => {
    const at = way.indexOf(file)
    if (at >= 0) found.push([...way.slice(at), file].join(' → '))
    if (at >= 0 || done.has(file)) return
    for (const next of edges.get(file) ?? []) walk(next, [...way, file])
    done.add(file)
  }
  for (const file of edges.keys()) walk(file, [])
  return found
}

/**
 * What a group is made of: its folder, and of `sdk/node` what that loads, whose calls are made with the group's
 * permissions.
 */
const partsOf = (name: string, sources: readonly Source[]): Source[] => {
  const parts = new Set(sources.filter(({ file }) => file.startsWith(`plugins/${name}/`) && !WEB.test(file)))
  for (const part of parts) {
    const loaded = importsOf(part).filter(({ target, type }) => !type && target.startsWith('sdk/node/'))
    for (const source of sources) if (loaded.some(({ target }) => target === source.file)) parts.add(source)
  }
  return [...parts]
}

/** Calls made and not declared, declared and not made, or made under a name no reader can check. */
const permissionBreaches = (
  { name, permissions }: Pick<PluginManifest, 'name' | 'permissions'>,
  sources: readonly Source[],
): string[] => {
  const made = new Set<string>()
  const hidden: string[] = []
  for (const source of partsOf(name, sources)) {
    for (const node of nodesOf(source)) {
      if (!ts.isCallExpression(node)) continue
      const callee = node.expression
      const through =
        ts.isPropertyAccessExpression(callee) && callee.name.text === 'call' ? callee.expression.getText() : undefined
      if (through === undefined && !(ts.isIdentifier(callee) && callee.text === 'call')) continue
      const call = literal(node.arguments[0])
      if (call !== undefined) made.add(call)
      else if (through === undefined || /\bhost$/.test(through))
        hidden.push(`${source.file} makes a call whose name is no literal: ${node.getText().slice(0, 60)}`)
    }
  }
  const declared = [...permissions.daemon, ...permissions.late]
  return [
    ...hidden,
    ...[...made]
      .filter(call => !declared.includes(call))
      .map(call => `${name} makes ${call}, which its manifest does not declare`),
    ...declared.filter(call => !made.has(call)).map(call => `${name} declares ${call} and never makes it`),
    ...declared.filter((call, at) => declared.indexOf(call) !== at).map(call => `${name} declares ${call} twice`),
  ]
}

/** Points that a group adds to without naming them in its manifest or the reverse, and events it never listens to. */
const wakeBreaches = (
  { name, events = [], points = [] }: Pick<PluginManifest, 'name' | 'events' | 'points'>,
  sources: readonly Source[],
): string[] => {
  const made = (method: string) =>
    new Set(
      sources
        .filter(({ file }) => file.startsWith(`plugins/${name}/`))
        .flatMap(nodesOf)
        .flatMap(node =>
          ts.isCallExpression(node)
          && ts.isPropertyAccessExpression(node.expression)
          && node.expression.name.text === method
          && /host$/.test(node.expression.expression.getText())
            ? [literal(node.arguments[0]) ?? '']
            : [],
        ),
    )
  const [added, heard] = [made('contribute'), made('on')]
  return [
    ...[...added]
      .filter(point => !points.includes(point))
      .map(point => `${name} adds to ${point}, which its manifest does not name`),
    ...points.filter(point => !added.has(point)).map(point => `${name} names the point ${point} and never adds to it`),
    ...events
      .filter(event => !heard.has(event))
      .map(event => `${name} names the event ${event} and never listens to it`),
  ]
}

const routeBreaches = (
  { name, routes }: Pick<PluginManifest, 'name' | 'routes'>,
  { functions }: Pick<ContractSchema, 'functions'>,
): string[] => {
  const calls = functions.map(call => call.name)
  return [
    ...calls
      .filter(call => isRoute(call) && !routes[call])
      .map(call => `${name}: the manifest does not say who may use ${call}`),
    ...Object.keys(routes)
      .filter(call => !calls.includes(call))
      .map(call => `${name}: the contract has no ${call}`),
    ...functions
      .filter(({ description = '' }) => !/^\S.*[.!?)`]/s.test(description))
      .map(call => `${name}: ${call.name} has no sentence that says what the caller gets`),
  ]
}

/** Routes that two groups declare, whatever they call the parameters: one path segment may have several owners. */
const ownerBreaches = (groups: readonly Pick<PluginManifest, 'name' | 'routes'>[]): string[] => {
  const owners = new Map<string, string>()
  return groups.flatMap(({ name, routes }) =>
    Object.keys(routes).flatMap(route => {
      const shape = route.replace(/\{\w+\}/g, '{}')
      const owner = owners.get(shape)
      owners.set(shape, name)
      return owner === undefined ? [] : [`${owner} and ${name} both declare ${route}`]
    }),
  )
}

/** Paths below the data folder that a plugin names by itself; backups hold all of it. */
const dataBreaches = (sources: readonly Source[]): string[] =>
  sources.flatMap(({ file, text }) =>
    file.startsWith('plugins/') && !file.startsWith('plugins/system/bundles/') && /\bjoin\(([\w.]+\.)?data,/.test(text)
      ? [`${file} names a path in the data folder`]
      : [],
  )

const partBreaches = (groups: readonly string[], files: readonly string[]): string[] =>
  groups.flatMap(group =>
    [
      ...[`plugins/${group}/contract.ts`, `plugins/${group}/plugin.ts`, `manifests/${group}.json`].filter(
        file => !files.includes(file),
      ),
      ...(files.some(
        file =>
          file === `test/plugins/${group}.test.ts` || new RegExp(`^test/plugins/${group}/.*\\.test\\.ts$`).test(file),
      )
        ? []
        : [`test/plugins/${group}.test.ts`]),
    ].map(file => `${group} lacks ${file}`),
  )

/** Lines that hold code. */
const linesOf = ({ text }: Source): number => {
  const bare = text.replace(/^\s*\/\*\*?[\s\S]*?\*\/[ \t]*$/gm, '').replace(/^\s*\/\/.*$/gm, '')
  return bare.split('\n').filter(line => line.trim()).length
}

const sizeBreaches = (sources: readonly Source[], limits = LINES): string[] => {
  const folders = new Map<string, number>()
  for (const source of sources.filter(({ file }) => file.startsWith('kernel/')))
    folders.set(dirname(source.file), (folders.get(dirname(source.file)) ?? 0) + linesOf(source))
  return [
    ...[...folders].flatMap(([folder, lines]) => {
      const most = limits.folders[folder] ?? 0
      return lines > most ? [`${folder} has ${lines} lines of code; it may have ${most}`] : []
    }),
    ...sources.flatMap(source => {
      const most = source.file.startsWith('kernel/') ? limits.kernelFile : limits.file
      return linesOf(source) > most ? [`${source.file} has ${linesOf(source)} lines of code; it may have ${most}`] : []
    }),
  ]
}

const MOST_FILES = 30

/** Folders in which a reader has to search for a file. */
const crowdBreaches = (sources: readonly { readonly file: string }[]): string[] =>
  Object.entries(Object.groupBy(sources, ({ file }) => dirname(file))).flatMap(([folder, files = []]) =>
    files.length > MOST_FILES ? [`${folder} has ${files.length} files; it may have ${MOST_FILES}`] : [],
  )

const WIDTH = 120

/** Lines that are wider than the formatter would make them, because it does not break texts. */
const widthBreaches = (sources: readonly Source[]): string[] =>
  sources.flatMap(({ file, text }) =>
    text.split('\n').flatMap((line, index) => {
      const width = [...line].length
      return width > WIDTH ? [`${file}:${index + 1} is ${width} columns wide; ${WIDTH} are allowed`] : []
    }),
  )

/** Forms that this project does not use. */
const formBreaches = (sources: readonly Source[]): string[] =>
  sources.flatMap(source =>
    nodesOf(source).flatMap(node => {
      const modifiers = ts.canHaveModifiers(node) ? (ts.getModifiers(node) ?? []) : []
      const form = ts.isEnumDeclaration(node)
        ? 'an enum'
        : ts.isModuleDeclaration(node) && !ts.isStringLiteral(node.name)
          ? 'a namespace'
          : ts.isExportAssignment(node) || modifiers.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword)
            ? 'a default export'
            : ts.isExportSpecifier(node) && node.name.text === 'default'
              ? 'a default export'
              : node.kind === ts.SyntaxKind.AnyKeyword && !ANY.test(source.file)
                ? 'any'
                : undefined
      return form ? [`${source.file} has ${form}`] : []
    }),
  )

const PLEDGE = /\b(?:TODO|FIXME|XXX|HACK)\b|@ts-(?:ignore|nocheck)|eslint-disable/

/** Comments that postpone work or switch off a check. */
const commentBreaches = (sources: readonly Source[]): string[] =>
  sources.flatMap(({ file, text }) => {
    const scanner = ts.createScanner(ts.ScriptTarget.ESNext, false, ts.LanguageVariant.Standard, text)
    const found: string[] = []
    for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
      const comment = kind === ts.SyntaxKind.SingleLineCommentTrivia || kind === ts.SyntaxKind.MultiLineCommentTrivia
      const [pledge] = (comment && PLEDGE.exec(scanner.getTokenText())) || []
      if (pledge) found.push(`${file} says ${pledge}`)
    }
    return found
  })

const LAX = /^(?:match|notMatch|has|hasStrict|throws|rejects)$/
/** What makes a pattern of a list that says whether more may follow. */
const SAYS = /^(?:exactly|beginning)$/

/** Whether a pattern has a plain list. */
const hasList = (at: ts.Node | undefined): boolean => {
  if (!at || ts.isFunctionLike(at) || ts.isNewExpression(at)) return false
  if (ts.isCallExpression(at)) return SAYS.test(at.expression.getText()) && at.arguments.some(hasList)
  return ts.isArrayLiteralExpression(at) || ts.forEachChild(at, child => hasList(child) || undefined) === true
}

/**
 * Checks of a test that accept too much: a list as pattern matches every longer one, and an absent value never matches
 * `notMatch`.
 */
const laxBreaches = (sources: readonly Source[]): string[] =>
  sources.flatMap(source =>
    nodesOf(source).flatMap(node => {
      if (
        !ts.isCallExpression(node)
        || !ts.isPropertyAccessExpression(node.expression)
        || !LAX.test(node.expression.name.text)
      )
        return []
      const [found, pattern] = node.arguments
      if (node.expression.name.text !== 'notMatch')
        return hasList(pattern)
          ? [
              `${source.file} lets more follow, so say exactly(…) or beginning(…) of `
                + `test/support/lists.ts: ${node.getText().slice(0, 120)}`,
            ]
          : []
      return /\?\.|\.(?:get|find|at)\([^()]*\)$/.test(found?.getText() ?? '')
        ? [`${source.file} cannot fail: ${node.getText().slice(0, 120)}`]
        : []
    }),
  )

const NOW = /^(?:Date\.now\(\)|new Date\(\)|Math\.random\(\))$/
const PART_OF_TIME = /^get(?:UTC)?(?:Date|Day|FullYear|Hours|Milliseconds|Minutes|Month|Seconds)$/

/** Where a test file, before its tests run, takes a part of the time or chance: its cases would change with it. */
const chanceBreaches = (sources: readonly Source[]): string[] =>
  sources
    .filter(({ file }) => !/^test\/(?:bench|fixtures)\//.test(file))
    .flatMap(source =>
      nodesOf(source).flatMap(node => {
        if (!(ts.isCallExpression(node) || ts.isNewExpression(node)) || !NOW.test(node.getText())) return []
        let chosen = node.getText() === 'Math.random()'
        for (let around: ts.Node = node.parent; around; around = around.parent) {
          if (ts.isFunctionLike(around)) return []
          chosen ||= ts.isPropertyAccessExpression(around) && PART_OF_TIME.test(around.name.text)
          chosen ||=
            ts.isBinaryExpression(around)
            && [ts.SyntaxKind.PercentToken, ts.SyntaxKind.SlashToken].includes(around.operatorToken.kind)
        }
        return chosen ? [`${source.file} depends on the date or on chance: ${node.parent.getText().slice(0, 80)}`] : []
      }),
    )

/** What the kernel and the sdk may name although a group has the same name, or owns it: the breaches, and why. */
const NAMED = [
  // The kernel's own members, sessions and limits of people; newer groups have these names, or publish changes of them.
  /^kernel\/.* names (?:areas|members|sessions), /,
  // Ordinary words for the source of an extension, a folder of git, and a scheme of addresses.
  /^sdk\/node\/.* names (?:git|workspace), /,
  // The types of all calls.
  /^sdk\/api\.ts /,
  // How the client resumes a run, and notices that the events of the sandbox are cut.
  /^sdk\/client\.ts names (?:POST \/agent\/attach|GET \/events), /,
  // The types that authors of extensions import; and what examples of extensions call.
  /^sdk\/(?:extension\.ts names \.\.\/plugins\/extensions\/contract\.js|examples\/\S+ names [A-Z]+ \/\S+), /,
  // An operation of the process of an extension, named as a call is.
  /^sdk\/node\/extension\/\S+ names settings\.get, /,
  // Calls that a library makes for the group that uses it: to record, to notify, to ask for reach and for what a turn
  // may do, to read stored secrets, to find the tree of a conversation, to count a program among those of one.
  /^sdk\/node\/record\/record\.ts names activity\.record, /,
  /^sdk\/node\/push\/send-push\.ts names push\.send, /,
  /^sdk\/node\/programs\/(?:previews|work-network|work-sessions)\.ts names (?:networks|preview|terminals)\.\w+, /,
  /^sdk\/node\/access\/asked-reach\.ts names areas\.reach, /,
  /^sdk\/node\/access\/turns\/turn-asks\.ts names networks\.admit, /,
  /^sdk\/node\/access\/value-masker\.ts names secrets\.values, /,
  /^sdk\/node\/access\/caller-tree\.ts names (?:agent\.conversation|checkouts\.repos), /,
  /^sdk\/node\/limits\/counted\.ts names checkouts\.program(?:Begun|Ended), /,
  // How far addresses are known.
  /^sdk\/node\/pages\/public-address\.ts names machine, /,
  /^sdk\/node\/transport\/stored-token\.ts names secrets\.(?:atHost|resolve), /,
  // The commands for everyday jobs; all other commands are derived from the document.
  /^sdk\/cli\/(?:verbs|follow|daemon)\//,
]

const namings = (sources: readonly Source[], groups: readonly PluginManifest[]): string[] => {
  const calls = new Set(groups.flatMap(({ routes, calls }) => [...Object.keys(routes), ...calls]))
  const words = new Set(
    groups.flatMap(({ name, domains, points = [], routes }) => [
      name,
      ...domains,
      ...points,
      ...Object.values(routes).flatMap(({ ticket }) => (ticket ? [ticket.for] : [])),
    ]),
  )
  return sources
    .filter(({ file }) => /^(?:kernel|sdk)\//.test(file))
    .flatMap(source =>
      nodesOf(source).flatMap(node => {
        const text = literal(node)
        const named =
          text !== undefined && (calls.has(text) || (isKind(node) && words.has(text)) || /plugins\/[a-z]/.test(text))
        return named ? [`${source.file} names ${text}, which belongs to a group`] : []
      }),
    )
}

const groupBreaches = (sources: readonly Source[], groups: readonly PluginManifest[]): string[] =>
  namings(sources, groups).filter(breach => !NAMED.some(allowed => allowed.test(breach)))

/** Whether a text is a literal type, and not the name of a property in a `Pick` or `Omit`. */
const isKind = (node: ts.Node): boolean => {
  if (!ts.isLiteralTypeNode(node.parent)) return false
  const outer = ts.isUnionTypeNode(node.parent.parent) ? node.parent.parent.parent : node.parent.parent
  return !(ts.isTypeReferenceNode(outer) && /^(?:Pick|Omit)$/.test(outer.typeName.getText()))
}

/** Paths that exist on one machine only: a home folder, or a work folder at the top. */
const PLACE = /(?<![\w.}/:-])(?:\/(?:home|Users|root|work|workspaces)\/[\w.-]+|[A-Z]:\\\\?Users\\)/

const placeBreaches = (sources: readonly Source[]): string[] =>
  sources.flatMap(({ file, text }) =>
    text
      .split('\n')
      .flatMap((line, at) =>
        PLACE.test(line) ? [`${file}:${at + 1} names a path of a machine: ${PLACE.exec(line)![0]}`] : [],
      ),
  )

/** What every group, or every plugin, exports under one name. */
const SHARED_NAMES = new Set(['contract', 'activate', 'examples', 'cli'])

/** The names that a file exports by declaring them. */
const exportsOf = (source: Source): string[] =>
  nodesOf(source).flatMap(node => {
    if (!ts.canHaveModifiers(node) || !ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
      return []
    if (ts.isVariableStatement(node)) return node.declarationList.declarations.map(({ name }) => name.getText())
    return ts.isDeclarationStatement(node) && node.name ? [node.name.getText()] : []
  })

/** Exported names that stand for more than one thing; overloads of one file are one thing. */
const nameBreaches = (sources: readonly Source[]): string[] => {
  const files = new Map<string, Set<string>>()
  for (const source of sources)
    for (const name of exportsOf(source)) files.set(name, (files.get(name) ?? new Set()).add(source.file))
  return [...files]
    .filter(([name, { size }]) => size > 1 && !SHARED_NAMES.has(name))
    .map(([name, found]) => `${name} is exported by ${[...found].join(' and ')}`)
}

// The project obeys them ---------------------------------------------------------------------------------------------

const groups = [...new Set(code.flatMap(({ file }) => (file.startsWith('plugins/') ? [file.split('/')[1]!] : [])))]

const obeyed = (sentence: string, breaches: readonly string[]): void =>
  void t.test(sentence, t => {
    t.same(breaches, [])
    t.end()
  })

obeyed('folders import only what they may', importBreaches(code, manifests))
obeyed('the parts of the sdk that browsers load need nothing else', browserBreaches(code))
obeyed('there are no import cycles of values or types', circles(code))
obeyed('no folder has more than 30 files', crowdBreaches([...code, ...tests]))
obeyed(
  'a manifest declares exactly the calls its group makes',
  manifests.flatMap(manifest => permissionBreaches(manifest, code)),
)
obeyed(
  'a manifest names the points its group adds to, and only events it listens to',
  manifests.flatMap(manifest => wakeBreaches(manifest, code)),
)
obeyed(
  'contract and manifest name the same routes, and every call says what it gives',
  contracts.flatMap(({ manifest, schema }) => routeBreaches(manifest, schema)),
)
obeyed('a route belongs to one group', ownerBreaches(manifests))
obeyed('a plugin keeps to its own folder, the logs and what walls keep', dataBreaches(code))
obeyed(
  'every group has contract, plugin, manifest and test',
  partBreaches(
    [...new Set([...groups, ...manifests.map(({ name }) => name)])],
    [...code, ...tests].map(({ file }) => file).concat(manifests.map(({ name }) => `manifests/${name}.json`)),
  ),
)
obeyed('kernel and sdk name no group', groupBreaches(code, manifests))
obeyed(
  'every exception to that is needed',
  NAMED.filter(allowed => !namings(code, manifests).some(breach => allowed.test(breach))).map(String),
)
obeyed('the kernel is small, and no file is long', sizeBreaches(code))
obeyed(
  `no line is wider than ${WIDTH} columns`,
  widthBreaches(
    [...code, ...tests, ...(await load('{.ci,.ci/peers,test/**}/*.mjs'))].filter(
      ({ file }) => !file.startsWith('test/fixtures/'),
    ),
  ),
)
obeyed('no default export, enum, namespace or any is used', formBreaches([...code, ...tests]))
obeyed('an exported name stands for one thing', nameBreaches(code))
obeyed('no comment postpones work or switches off a check', commentBreaches([...code, ...tests]))
obeyed('every check of a test can fail', laxBreaches(tests))
obeyed('what runs depends neither on the date nor on chance', chanceBreaches(tests))
obeyed(
  'no file names a path of one machine',
  placeBreaches(
    [
      ...code,
      ...tests,
      ...(await load('{*.md,*.json,manifests/*.json,openapi/*.json,.ci/run,.ci/*.mjs,.ci/peers/*.json}')),
    ].filter(({ file }) => file !== 'package-lock.json'),
  ),
)

// And finds what does not --------------------------------------------------------------------------------------------

const at = (file: string, ...lines: string[]): Source => ({ file, text: lines.join('\n') })

t.test('an import that is not allowed is found in every form it can take', t => {
  const breaches = (file: string, line: string) =>
    importBreaches([at(file, line)], [{ name: 'a', libraries: ['isomorphic-git'] }]).length
  const forms = [
    "import { x } from 'koa'",
    "import 'koa'",
    "import x, {\n  y,\n} from 'koa'",
    "export * from 'koa'",
    "export { x } from 'koa'",
    "const x = await import('koa')",
    "import x = require('koa')",
    "type X = import('koa').X",
  ]
  for (const form of forms) t.equal(breaches('plugins/a/plugin.ts', form), 1, form)
  t.equal(
    breaches('plugins/a/plugin.ts', "const text = \"import { x } from 'koa'\" // import 'koa'"),
    0,
    'not in a text or comment',
  )
  const rules: [file: string, line: string, found: number][] = [
    ['plugins/a/plugin.ts', "import type { B } from '../b/contract.js'", 0],
    ['plugins/a/plugin.ts', "import { b } from '../b/contract.js'", 1],
    ['plugins/a/plugin.ts', "import type { B } from '../b/work.js'", 1],
    ['plugins/a/plugin.ts', "import { x } from '../ab/work.js'", 1],
    ['plugins/a/plugin.ts', "import { x } from '../../kernel/calls.js'", 1],
    ['plugins/a/plugin.ts', "import git from 'isomorphic-git'", 0],
    ['plugins/a/work.ts', "import { run } from '../../sdk/node/programs/run.js'", 0],
    ['plugins/a/work.ts', "import { createHost } from '../../sdk/host.js'", 1],
    ['plugins/a/contract.ts', "import { x } from './work.js'", 1],
    ['plugins/a/contract.ts', "export type * from './frames.js'", 0],
    ['plugins/a/contract.ts', "import { join } from 'node:path'", 1],
    ['plugins/a/part/contract.ts', "import typia from 'typia'", 0],
    ['plugins/a/part/contract.ts', "import express from 'express'", 1],
    ['plugins/a/part/work.ts', "import typia from 'typia'", 1],
    ['kernel/http/app.ts', "import Router from '@koa/router'", 0],
    ['kernel/http/app.ts', "import { system } from '../../plugins/system/contract.js'", 1],
    ['kernel/http/app.ts', "import express from 'express'", 1],
    ['sdk/client.ts', "import { request } from 'node:http'", 1],
    ['sdk/client.ts', "import type { Agent } from '../plugins/agent/contract.js'", 1],
    ['sdk/api.ts', "import type { Agent } from '../plugins/agent/contract.js'", 0],
    ['sdk/cli.ts', "import { request } from 'node:http'", 0],
    ['sdk/cli/follow/render.ts', "import type { Frame } from '../../../plugins/agent/contract.js'", 0],
    ['sdk/cli/follow/render.ts', "import { agent } from '../../../plugins/agent/contract.js'", 1],
    ['sdk/node/programs/run.ts', "import type { Frame } from '../../../plugins/agent/contract.js'", 1],
    ['openapi/document.ts', "import { parseManifest } from '../kernel/manifest.js'", 1],
    ['openapi/document.ts', "import type { PluginManifest } from '../kernel/manifest.js'", 0],
  ]
  for (const [file, line, found] of rules) t.equal(breaches(file, line), found, `${file}: ${line}`)
  t.end()
})

t.test('a route of two groups is found', t => {
  const owned = (name: string, route: string) => ({
    name,
    routes: { [route]: { id: `${name}.name`, role: 'viewer' as const, tokens: [] } },
  })
  const cards = owned('cards', 'POST /cards/{id}/name')
  t.same(ownerBreaches([cards, owned('work', 'POST /cards/{card}/name')]), [
    'cards and work both declare POST /cards/{card}/name',
  ])
  t.same(ownerBreaches([cards, owned('work', 'POST /cards/{id}')]), [])
  t.end()
})

t.test('a browser file that reaches Node through another, and a circle, are found', t => {
  const client = at('sdk/client.ts', "import { x } from './between.js'")
  t.same(browserBreaches([client, at('sdk/between.ts', "import { y } from 'node:fs'")]), [
    'sdk/client.ts reaches node:fs through sdk/between.ts',
  ])
  t.same(browserBreaches([client, at('sdk/between.ts', "const y = await import('node:fs')")]), [])
  const ring = [
    at('sdk/a.ts', "import { b } from './b.js'"),
    at('sdk/b.ts', "export { c } from './c.js'"),
    at('sdk/c.ts', "import { type A } from './a.js'"),
  ]
  t.same(circles(ring), ['sdk/a.ts → sdk/b.ts → sdk/c.ts → sdk/a.ts'])
  const types = ["import type { A } from './a.js'", "export type * from './a.js'", "type A = import('./a.js').A"]
  for (const line of types)
    t.same(circles([...ring.slice(0, 2), at('sdk/c.ts', line)]), ['sdk/a.ts → sdk/b.ts → sdk/c.ts → sdk/a.ts'], line)
  t.same(circles([...ring.slice(0, 2), at('sdk/c.ts', "const a = await import('./a.js')")]), [])
  t.end()
})

t.test('a missing, superfluous or hidden permission is found', t => {
  const check = (daemon: string[], ...lines: string[]) =>
    permissionBreaches({ name: 'a', permissions: { daemon, late: [] } }, [at('plugins/a/plugin.ts', ...lines)])
  t.same(check(['b.c'], "await host.call(\n  'b.c', { id })"), [])
  t.match(check([], "host.call('b.c')"), exactly('a makes b.c, which its manifest does not declare'))
  t.match(check([], "this.#host.call('b.c')"), exactly(/a makes b\.c/))
  t.match(check([], "const { call } = host; call('GET /b')"), exactly(/a makes GET \/b/))
  t.match(check(['b.c'], "// host.call('b.c')"), exactly('a declares b.c and never makes it'))
  t.match(check([], 'host.call(name)'), exactly(/no literal/))
  t.same(check([], 'method.call(this)'), [])
  const library = [
    at('sdk/node/b.ts', "export { c } from './c.js'"),
    at('sdk/node/c.ts', "export const c = host => host.call('d.e')"),
  ]
  const through = (daemon: string[], line: string) =>
    permissionBreaches({ name: 'a', permissions: { daemon, late: [] } }, [
      at('plugins/a/deep/plugin.ts', line),
      ...library,
    ])
  t.match(
    through([], "import { c } from '../../../sdk/node/b.js'"),
    exactly('a makes d.e, which its manifest does not declare'),
    'through a library',
  )
  t.same(through(['d.e'], "const { c } = await import('../../../sdk/node/c.js')"), [])
  t.match(
    through(['d.e'], "import type { c } from '../../../sdk/node/b.js'"),
    exactly('a declares d.e and never makes it'),
    'a type makes no call',
  )
  t.end()
})

t.test('a kernel or sdk file that names a call, a domain or a folder of a group is found', t => {
  const group = parseManifest(
    JSON.stringify({
      ...JSON.parse(readFileSync('manifests/logs.json', 'utf8')),
      calls: ['logs.inner'],
      domains: ['lines'],
    }),
    'logs.json',
  )
  const found = (file: string, line: string) => groupBreaches([at(file, line)], [group]).length
  t.equal(found('kernel/a.ts', "await call('GET /logs')"), 1)
  t.equal(found('sdk/a.ts', "await call('logs.inner')"), 1)
  t.equal(found('sdk/a.ts', "type Domain = 'lines'"), 1)
  t.equal(found('sdk/a.ts', "const folder = 'plugins/logs'"), 1)
  t.equal(found('sdk/a.ts', "const folder = join(data, 'logs', 'lines')"), 0, 'a plain word is no name of a group')
  t.equal(found('sdk/a.ts', "type Some = Pick<All, 'lines' | 'b'>"), 0, 'nor is that of a property')
  t.equal(found('sdk/a.ts', "type Some = All<'lines' | 'b'>"), 1)
  t.equal(found('sdk/node/extension/a.ts', "await call('logs.inner')"), 1)
  t.equal(found('sdk/client.ts', "await call('GET /logs')"), 1)
  t.equal(found('sdk/cli/calls/a.ts', "await call('GET /logs')"), 1)
  t.equal(found('sdk/api.ts', "import type { Logs } from '../plugins/logs/contract.js'"), 0)
  t.equal(found('sdk/cli/verbs/logs.ts', "await call('GET /logs')"), 0)
  t.end()
})

t.test('a point too few or too many, and an event that is never listened to, are found', t => {
  const check = (wakes: { events?: string[]; points?: string[] }, line: string) =>
    wakeBreaches({ name: 'a', ...wakes }, [at('plugins/a/plugin.ts', line)])
  t.same(check({ points: ['b.c'] }, "host.contribute('b.c', () => [])"), [])
  t.same(check({}, "this.#host.contribute('b.c', () => [])"), ['a adds to b.c, which its manifest does not name'])
  t.same(check({ points: ['b.c'] }, ''), ['a names the point b.c and never adds to it'])
  t.same(check({ events: ['b.done'] }, "host.on('b.done', () => {})"), [])
  t.same(check({ events: ['b.done'] }, "host.on('b.gone', () => {})"), [
    'a names the event b.done and never listens to it',
  ])
  t.end()
})

t.test('a route without access, access without a route, and a call without a sentence are found', t => {
  const call = (name: string, description?: string) => ({
    name,
    parameters: [],
    ...(description !== undefined && { description }),
  })
  const routes = { 'GET /gone': { id: 'a.gone', open: true as const } }
  t.match(
    routeBreaches({ name: 'a', routes }, { functions: [call('GET /new', 'Gives it.'), call('a.inner')] }),
    exactly(/who may use GET \/new/, /no GET \/gone/, /a\.inner has no sentence/),
  )
  t.match(
    partBreaches(['a'], ['plugins/a/plugin.ts', 'test/plugins/b.test.ts']),
    exactly(/contract/, /manifest/, /test\/plugins\/a\.test\.ts/),
  )
  t.same(
    partBreaches(
      ['a'],
      ['plugins/a/contract.ts', 'plugins/a/plugin.ts', 'manifests/a.json', 'test/plugins/a/queue.test.ts'],
    ),
    [],
  )
  t.end()
})

t.test('a check that cannot fail, or accepts a longer list, is found', t => {
  const lax = (line: string) => laxBreaches([at('test/a.test.ts', line)]).length
  const breaches = [
    't.match(x, [])',
    't.match(x, { k: [] })',
    't.has(x, [{ k: { deep: [] } }])',
    't.notMatch(x?.y, /z/)',
    "t.notMatch(map.get('x'), /z/)",
    't.match(x, [a])',
    't.match(x, { k: [a] })',
    't.match(x, exactly({ k: [a] }))',
    't.match(x, a ? [b] : c)',
    't.match(x, [...a])',
    't.rejects(x, { errors: [a] })',
  ]
  for (const line of breaches) t.equal(lax(line), 1, line)
  const kept = [
    't.match(x, { k: { length: 0 } })',
    't.same(x, [a])',
    't.match(f([]), { k: g([]) })',
    't.notMatch(x.y, /z/)',
    't.match([x], a)',
    't.match(x, exactly(a, { k: exactly(b) }))',
    't.match(x, beginning(a))',
    't.match(x, { k: (y: string) => [y] })',
  ]
  for (const line of kept) t.equal(lax(line), 0, line)
  t.end()
})

t.test('cases that the date or chance chooses are found', t => {
  const found = (line: string) => chanceBreaches([at('test/a.test.ts', line)]).length
  for (const line of [
    'const DAY = Math.floor(Date.now() / 86_400_000)',
    'const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)',
    'for (const one of ALL.filter((_, at) => true)) if (new Date().getDay() === 1) t.test(one)',
    'const odd = Math.random() > 0.5',
  ])
    t.equal(found(line), 1, line)
  for (const line of [
    'const NOW = Date.now() - 3_600_000',
    'const seconds = () => Math.floor(Date.now() / 1000)',
    "t.test('x', () => setTimeout(Math.random() * 20))",
  ])
    t.equal(found(line), 0, line)
  t.end()
})

t.test('a line that is too wide is found, in columns and not in bytes', t => {
  const wide = 'ä'.repeat(WIDTH)
  t.same(widthBreaches([at('sdk/a.ts', 'const a = 1', wide, `${wide}.`)]), [
    'sdk/a.ts:3 is 121 columns wide; 120 are allowed',
  ])
  t.end()
})

t.test('a long file, a large kernel, a full folder and an excluded form are found', t => {
  const many = Array.from({ length: 31 }, (_, index) => at(`sdk/many/${index}.ts`))
  t.same(crowdBreaches([...many, at('sdk/a.ts')]), ['sdk/many has 31 files; it may have 30'])
  const long = at('kernel/a.ts', '/** Two', ' * lines. */', 'const a = 1', '', '// why', 'const b = 2')
  t.equal(linesOf(long), 2)
  t.match(
    sizeBreaches([long], { folders: { kernel: 1 }, kernelFile: 1, file: 1 }),
    exactly(/^kernel has 2/, /kernel\/a\.ts has 2/),
  )
  const forms = [
    'export default 1',
    'export default function f() {}',
    'export { a as default }',
    'enum A { B }',
    'namespace A {}',
    'const a: any = 1',
    'type A = Set<any>',
  ]
  for (const form of forms) t.equal(formBreaches([at('sdk/a.ts', form)]).length, 1, form)
  t.same(formBreaches([at('sdk/a.ts', "const any = 'enum'")]), [])
  for (const comment of ['// TO' + 'DO later', '/* FIX' + 'ME */', '// @ts-' + 'ignore'])
    t.equal(commentBreaches([at('sdk/a.ts', comment)]).length, 1, comment)
  t.same(commentBreaches([at('sdk/a.ts', "const TODO = 'TODO'")]), [])
  for (const path of ['/ho' + 'me/me/project', '/ro' + 'ot/.config', '/wo' + 'rk/main', '/Us' + 'ers/me/x'])
    t.equal(placeBreaches([at('a.md', `see ${path}`)]).length, 1, path)
  t.same(placeBreaches([at('a.md', '`~/.local/state`, GET /workspace/media, x/work/y, http://host/home/me')]), [])
  t.end()
})

t.test('an exported name that stands for two things is found', t => {
  const files = (...texts: string[]) => texts.map((text, index) => at(`sdk/${index}.ts`, text))
  for (const text of [
    'export const a = 1',
    'export const b = 2, a = 1',
    'export type a = 1',
    'export class a {}',
    'export async function* a() {}',
    'export interface a {}',
  ])
    t.same(nameBreaches(files('export function a(): void {}', text)), ['a is exported by sdk/0.ts and sdk/1.ts'], text)
  t.same(
    nameBreaches(
      files(
        'export const activate = 1',
        'export const activate = 2',
        'const a = 1',
        'export const a = 1',
        "export type * from './a.js'",
      ),
    ),
    [],
  )
  t.end()
})
