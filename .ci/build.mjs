// Compiles into dist/, and bundles the programs into dist/bundle/, when a source changed since the last time. Otherwise
// both are left alone: a daemon may be running from them.
import { build } from 'esbuild'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { isBuiltin } from 'node:module'
import { chmodSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

const STAMP = 'dist/.built'
const sources = [...globSync('{kernel,plugins,sdk,openapi,test}/**/*.ts').sort(), 'tsconfig.json', 'package-lock.json', '.ci/build.mjs']
const digest = createHash('sha256').update(process.version)
for (const file of sources) digest.update(file).update('\0').update(readFileSync(file)).update('\0')
const wanted = digest.digest('hex')

const built = () => {
  try {
    return readFileSync(STAMP, 'utf8')
  } catch {
    return ''
  }
}

/** What is started by its path, or loaded by one that is put together when the program runs. */
const ENTRIES = [
  'kernel/main.js', 'sdk/cli.js', 'sdk/child.js', 'sdk/node/runner-child.js', 'sdk/node/network/inside-child.js', 'plugins/agent/script-agent.js', 'openapi/document.js', 'openapi/reference.js', 'openapi/welcome.js', 'openapi/shapes.js',
]

const IMPORT = /^import (?:(\w+)(?:, )?)?(?:\* as (\w+)|\{([^}]*)\})? ?from ['"]([\w:/]+)['"];?$/gm

/**
 * What is built into Node is taken as it is. An `import` of it reads everything it exports, and so loads what is made to be
 * loaded when it is first used: with `node:http` all of `fetch`, a seventh of the time a start takes.
 */
const builtin = {
  name: 'builtin',
  setup: ({ onLoad }) => onLoad({ filter: /\.m?js$/ }, ({ path }) => ({
    contents: readFileSync(path, 'utf8').replace(IMPORT, (line, whole, all, names, from) => {
      if (!isBuiltin(from)) return line
      const taken = [whole, all, names && `{${names.replaceAll(' as ', ': ')}}`].filter(Boolean)
      return taken.map(name => `const ${name} = process.getBuiltinModule('${from}');`).join(' ')
    }),
  })),
}

/** Few files start quicker than many: every program with its libraries, parts that several share in `chunks/`. */
const bundle = async () => {
  await build({
    entryPoints: [...ENTRIES.map(name => `dist/${name}`), ...globSync('dist/plugins/*/plugin.js')],
    outbase: 'dist', outdir: 'dist/bundle', chunkNames: 'chunks/[name]-[hash]',
    bundle: true, splitting: true, format: 'esm', platform: 'node', target: 'node24', logLevel: 'warning',
    // Native modules, and two that are large and only used when they are asked for.
    external: ['sqlite3', '@lydell/node-pty', 'isomorphic-git', 'playwright-core'],
    plugins: [builtin],
    // Libraries in the older format of modules ask by this name.
    banner: { js: "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
  })
  chmodSync('dist/bundle/sdk/cli.js', 0o755)
}

if (built() !== wanted) {
  rmSync('dist', { recursive: true, force: true })
  const { status } = spawnSync(process.execPath, ['node_modules/ts-patch/bin/tspc.js', '-p', 'tsconfig.json'], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  await bundle()
  writeFileSync(STAMP, wanted)
}
