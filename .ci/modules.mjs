// Writes a module to `dist/` for each source, which is what tests import. Types are taken out, not checked.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { node } from './node.mjs'
import { hashed, put } from './sources.mjs'

const KEPT = 'dist/.stamps/modules'
const FEW = 200

const moduleOf = file => `dist/${file.replace(/\.ts$/, '.js')}`
const read = file => readFileSync(file, 'utf8')

/** Compiles the sources that changed since the last time, `made` as they are, and removes what has no source. */
export const modules = async (sources, made) => {
  const tools = hashed(process.version, ...['package-lock.json', 'tsconfig.json', '.ci/modules.mjs'].map(read))
  const before = existsSync(KEPT) ? JSON.parse(read(KEPT)) : {}
  const hashes = {}
  const changed = []
  for (const file of sources) {
    hashes[file] = createHash('sha256')
      .update(tools)
      .update(made.get(file) ?? readFileSync(file))
      .digest('base64')
    if (before[file] === hashes[file] && existsSync(moduleOf(file))) continue
    if (made.has(file)) put(moduleOf(file), made.get(file))
    else changed.push(file)
  }
  rmSync(KEPT, { force: true })
  // The compile cache of tests has a name for each state of a file: old ones would stay for ever.
  if (changed.length) rmSync('dist/compiled', { recursive: true, force: true, maxRetries: 5 })
  if (changed.length) {
    const count = changed.length <= FEW ? 1 : 2
    const shares = Array.from({ length: count }, (_, at) => changed.filter((_, of) => of % count === at))
    await Promise.all(shares.map(share => node(fileURLToPath(import.meta.url), ...share)))
  }
  for (const file of globSync('plugins/**/*.json', { exclude: ['plugins/console/web/**'] }))
    put(`dist/${file}`, readFileSync(file))
  const wanted = new Set(sources.map(moduleOf))
  for (const file of globSync('dist/{kernel,plugins,sdk,openapi,test}/**/*.js')) if (!wanted.has(file)) rmSync(file)
  put(KEPT, JSON.stringify(hashes))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { default: ts } = await import('typescript')
  const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, process.cwd())
  const compilerOptions = { ...options, module: ts.ModuleKind.ESNext, moduleResolution: undefined, paths: undefined }
  for (const file of process.argv.slice(2))
    put(moduleOf(file), ts.transpileModule(read(file), { fileName: file, compilerOptions }).outputText)
}
