// Writes the validators that typia makes from types: the few files that ask for one are compiled with it, into
// `dist/.validators/`; everything else needs no types. A file is compiled again when something it imports, however far
// away, has changed: its key is the hash of all of that.
import { availableParallelism } from 'node:os'
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { node } from './node.mjs'
import { hashed, put } from './sources.mjs'

const FOLDER = 'dist/.validators'
/** One process compiles this many before a second one pays. */
const FEW = 6

const ASKS = /\btypia\.(?!tags\b)\w+/
const IMPORTS = /(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']*)'/g

/** The files of `sources` that ask typia for something, each with the hash of all that its types depend on. */
const keysOf = sources => {
  const known = new Map()
  const read = file => {
    if (!known.has(file)) {
      const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
      const imports = [...text.matchAll(IMPORTS)].map(([, path]) => join(dirname(file), path.replace(/\.js$/, '.ts')))
      known.set(file, { text, imports })
    }
    return known.get(file)
  }
  const closure = (file, reached = new Set()) => {
    if (reached.has(file)) return reached
    reached.add(file)
    for (const imported of read(file).imports) closure(imported, reached)
    return reached
  }
  const tools = hashed(
    ...['package-lock.json', 'tsconfig.json', '.ci/validators.mjs'].map(file => readFileSync(file, 'utf8')),
  )
  return new Map(
    sources
      .filter(file => ASKS.test(read(file).text))
      .map(file => [file, hashed(tools, ...[...closure(file)].sort().flatMap(each => [each, read(each).text]))]),
  )
}

const moduleOf = file => join(FOLDER, file.replace(/\.ts$/, '.js'))
const keyFile = file => `${moduleOf(file)}.key`

/** The compiled text of the files of `sources` that ask typia for something. */
export const validators = async (sources, progress = () => {}) => {
  const keys = keysOf(sources)
  const wanted = [...keys].filter(
    ([file, key]) => !existsSync(keyFile(file)) || readFileSync(keyFile(file), 'utf8') !== key,
  )
  const files = wanted.map(([file]) => file)
  for (const file of files) rmSync(keyFile(file), { force: true })
  if (files.length) {
    progress(`${files.length} contracts are compiled`)
    const count = files.length <= FEW ? 1 : Math.min(2, availableParallelism())
    const shares = Array.from({ length: count }, (_, at) => files.filter((_, of) => of % count === at))
    await Promise.all(shares.map(share => node(fileURLToPath(import.meta.url), ...share)))
    for (const [file, key] of wanted) put(keyFile(file), key)
  }
  for (const old of globSync(`${FOLDER}/**/*.js`))
    if (!keys.has(relative(FOLDER, old).replace(/\.js$/, '.ts')))
      for (const gone of [old, `${old}.key`]) rmSync(gone, { force: true })
  return new Map([...keys.keys()].map(file => [file, readFileSync(moduleOf(file), 'utf8')]))
}

/** Compiles files with typia, and throws what it refuses. */
const compile = async files => {
  const { default: ts } = await import('typescript')
  const { transform } = await import('typia/lib/transform')
  const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files }, ts.sys, process.cwd())
  const program = ts.createProgram(files, { ...options, outDir: FOLDER })
  const refused = []
  const before = [transform(program, undefined, { addDiagnostic: diagnostic => refused.push(diagnostic) })]
  for (const file of files)
    program.emit(program.getSourceFile(file), (_, text) => put(moduleOf(file), text), undefined, false, { before })
  if (refused.length) {
    const host = {
      getCurrentDirectory: () => process.cwd(),
      getCanonicalFileName: name => name,
      getNewLine: () => '\n',
    }
    console.error(ts.formatDiagnostics(refused, host))
    process.exit(1)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await compile(process.argv.slice(2))
