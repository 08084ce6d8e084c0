import { build } from 'esbuild'
import { chmodSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'

/** Native parts of bundled libraries, which do without them. */
const OPTIONAL = ['cpu-features', '*.node']

/** What is started by its path, or loaded by one that is put together when the program runs. */
const ENTRIES = [
  'kernel/main.js',
  'sdk/cli.js',
  'sdk/child.js',
  'sdk/node/programs/runner-child.js',
  'sdk/node/network/inside-child.js',
  'plugins/agent/providers/script-agent.js',
  'plugins/agent/tool-server/bridge.js',
  'plugins/capabilities/ssh/relay-child.js',
  'plugins/chores/scans/scan-child.js',
  'plugins/workspace/derived/derive-child.js',
  'plugins/safety/replay/replay-worker.js',
  'plugins/shield/replay/shield-replay-worker.js',
  'plugins/workspace/search/index/index-worker.js',
  'plugins/workspace/search/shape-child.js',
  'openapi/document.js',
  'openapi/reference.js',
  'openapi/shapes.js',
]

const IMPORT = /^import (?:(\w+)(?:, )?)?(?:\* as (\w+)|\{([^}]*)\})? ?from ['"]([\w:/]+)['"];?$/gm

/**
 * What is built into Node is taken as it is. An `import` of it reads everything it exports, and so loads what is made
 * to be loaded when it is first used: with `node:http` all of `fetch`, a seventh of the time a start takes.
 */
const builtin = {
  name: 'builtin',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.m?js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace(IMPORT, (line, whole, all, names, from) => {
        if (!isBuiltin(from)) return line
        const taken = [whole, all, names && `{${names.replaceAll(' as ', ': ')}}`].filter(Boolean)
        return taken.map(name => `const ${name} = process.getBuiltinModule('${from}');`).join(' ')
      }),
    })),
}

/** The tables of all media types, two of them, which Koa and its libraries load: few requests need one. */
const mediaTypes = {
  name: 'media-types',
  setup: ({ onResolve, onLoad, resolve }) => {
    onResolve({ filter: /^mime-types$/, namespace: 'file' }, async ({ importer, kind, resolveDir }) => {
      if (kind !== 'require-call' || !/\/node_modules\/(?:accepts|koa|type-is)\//.test(importer)) return undefined
      const { path } = await resolve('mime-types', { kind, resolveDir, namespace: 'media-types' })
      return { path, namespace: 'media-types' }
    })
    onLoad({ filter: /.*/, namespace: 'media-types' }, ({ path }) => ({
      contents: `for (const name of ['contentType', 'lookup'])
  exports[name] = (...given) => require(${JSON.stringify(path)})[name](...given)`,
      resolveDir: dirname(path),
    }))
  },
}

/** Libraries in the older format of modules ask by this name. */
const REQUIRE = "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);\n"

/** Takes the function from files that do not ask: making it takes longer than most of them. */
const withoutRequire = {
  name: 'without-require',
  setup: ({ onEnd }) =>
    onEnd(({ metafile }) => {
      for (const file of Object.keys(metafile.outputs)) {
        const rest = readFileSync(file, 'utf8').replace(REQUIRE, '')
        if (!/\brequire\b/.test(rest)) writeFileSync(file, rest)
      }
    }),
}

/**
 * Few files start quicker than many: every program of a built folder with its libraries, parts that several share in
 * `chunks/`.
 */
export const bundle = async folder => {
  await build({
    entryPoints: [...ENTRIES, ...globSync('plugins/*/plugin.js', { cwd: folder })].map(name => join(folder, name)),
    outbase: folder,
    outdir: join(folder, 'bundle'),
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    logLevel: 'warning',
    // Native modules, WebAssembly and programs, and what is large and only used when it is asked for.
    external: [
      'sqlite3',
      '@lydell/node-pty',
      '@ast-grep/napi',
      '@vscode/ripgrep',
      '@vscode/tree-sitter-wasm',
      'web-tree-sitter',
      'isomorphic-git',
      'officeparser',
      'playwright-core',
      ...OPTIONAL,
    ],
    plugins: [mediaTypes, builtin, withoutRequire],
    metafile: true,
    banner: { js: REQUIRE.trim() },
  })
  // What authors and other programs import; browsers load some of it, which have nothing that is built into Node.
  await build({
    entryPoints: ['extension', 'client', 'page', 'testing'].map(name => join(folder, 'sdk', `${name}.js`)),
    outdir: join(folder, 'bundle/sdk'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'es2023',
    logLevel: 'warning',
  })
  // One file, because nothing else of the program is visible where it runs.
  await build({
    entryPoints: [join(folder, 'sdk/node/extension/runner.js')],
    outfile: join(folder, 'bundle/sdk/node/extension/runner.js'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    logLevel: 'warning',
  })
  chmodSync(join(folder, 'bundle/sdk/cli.js'), 0o755)
}
