import { build } from 'esbuild'
import { chmodSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'

/** Native parts of bundled libraries, which do without them. */
const OPTIONAL = ['cpu-features', '*.node', '@napi-rs/canvas', 'tesseract.js']

/** Native modules, WebAssembly and programs, and what is large and only used when it is asked for. */
export const EXTERNAL = [
  '@lydell/node-pty',
  '@ast-grep/napi',
  '@vscode/ripgrep',
  '@vscode/tree-sitter-wasm',
  'web-tree-sitter',
  'isomorphic-git',
  'playwright-core',
]

/** What is started by its path, or loaded by one that is put together when the program runs. */
export const ENTRIES = [
  'kernel/main',
  'sdk/cli',
  'sdk/child',
  'sdk/node/programs/runner-child',
  'sdk/node/network/inside-child',
  'plugins/agent/providers/script-agent',
  'plugins/agent/tool-server/bridge',
  'plugins/capabilities/docker/engine-child',
  'plugins/capabilities/ssh/relay-child',
  'plugins/chores/scans/scan-child',
  'plugins/cli/jobs/job-child',
  'plugins/workspace/derived/derive-child',
  'plugins/routed/serving/translator-child',
  'plugins/safety/replay/replay-worker',
  'plugins/shield/replay/shield-replay-worker',
  'plugins/workspace/search/index/index-worker',
  'plugins/workspace/search/index/space-worker',
  'plugins/workspace/search/shape-child',
  'openapi/describe-build',
  'openapi/document',
  'openapi/reference',
  'openapi/shapes',
]

/** Names whose reading alone prints a warning. */
const WARNING = ['fips']

/**
 * What is built into Node is a module of its own here, with the exports that somebody imports. An `import` of it reads
 * everything it exports, and so loads what is made to be loaded when it is first used: with `node:http` all of `fetch`,
 * a seventh of the time a start takes. Libraries in the older format of modules get the whole of it by `require`.
 */
const builtin = {
  name: 'builtin',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^(?:node:)?[\w/]+$/ }, ({ path, kind }) => {
      if (kind !== 'import-statement' || !isBuiltin(path)) return undefined
      return { path: path.replace(/^(?:node:)?/, 'node:'), namespace: 'builtin', sideEffects: false }
    })
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => {
      const names = Object.keys(process.getBuiltinModule(path)).filter(
        name => /^[a-z_$][\w$]*$/i.test(name) && name !== 'default' && !WARNING.includes(name),
      )
      // `_` keeps a name that is a word of the language, and one that the text itself uses, apart.
      const values = names.map(name => `const _${name} = /* @__PURE__ */ (() => all.${name})()`)
      return {
        contents: [
          `const all = /* @__PURE__ */ process.getBuiltinModule('${path}')`,
          'export default all',
          ...values,
          `export { ${names.map(name => `_${name} as ${name}`).join(', ')} }`,
        ].join('\n'),
      }
    })
  },
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

/** Replaces a text of a library that must be there. */
const replaced = (path, from, to) => {
  const text = readFileSync(path, 'utf8')
  if (!text.includes(from)) throw new Error(`${path}: expected ${JSON.stringify(from)}: this version is another`)
  return text.replace(from, to)
}

/**
 * Has `officeparser` take what it needs for PDF from the bundle: with a `require` it looks for the package. Without a
 * canvas, the parser of PDF needs the matrices that officeparser defines.
 */
const pdfInside = {
  name: 'pdf-inside',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/officeparser\/dist\/utils\/moduleLoader\.js$/ }, ({ path }) => {
      const asks = 'function isRequireAvailable() {'
      const contents = replaced(path, asks, `${asks} return false`)
      // Only browsers get this far.
      return { contents: contents.replace("return import('pdfjs-dist');", '') }
    })
    onLoad({ filter: /\/pdfjs-dist\/legacy\/build\/pdf\.mjs$/ }, ({ path }) => ({
      contents: `import { ensureEnvPolyfills } from '../../../officeparser/dist/utils/envUtils.js'
ensureEnvPolyfills()
${readFileSync(path, 'utf8')}`,
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

/** The text that typia made of some sources. */
const compiled = made => ({
  name: 'compiled',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const contents = made.get(relative('.', path))
      return contents && { contents, loader: 'js', resolveDir: dirname(path) }
    }),
})

/** The compiler's settings that matter here; those of types name files that cannot be bundled. */
const SETTINGS = { compilerOptions: { target: 'es2023', verbatimModuleSyntax: true } }

/**
 * Few files start quicker than many: every program of the sources in `from`, or of a built folder, with its libraries,
 * parts that several share in `chunks/`. `made` has what typia made of the sources that ask it.
 */
export const bundle = async (from, out, made = new Map()) => {
  // Names of what is bundled change with what is in it: old ones would stay for ever. Pages have a step of their own.
  for (const old of globSync(`${out}/*`, { exclude: [`${out}/console`] })) rmSync(old, { recursive: true, force: true })
  const ending = existsSync(join(from, 'kernel/main.ts')) ? 'ts' : 'js'
  const at = name => join(from, `${name}.${ending}`)
  const common = {
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'warning',
    tsconfigRaw: SETTINGS,
  }
  const plugins = globSync(`plugins/*/{plugin,cli}.${ending}`, { cwd: from }).map(name => name.slice(0, -3))
  await Promise.all([
    build({
      ...common,
      entryPoints: [...ENTRIES, ...plugins].map(at),
      outbase: from,
      outdir: out,
      chunkNames: 'chunks/[name]-[hash]',
      splitting: true,
      target: 'node24',
      external: [...EXTERNAL, ...OPTIONAL],
      plugins: [mediaTypes, pdfInside, builtin, compiled(made), withoutRequire],
      metafile: true,
      banner: { js: REQUIRE.trim() },
      // Libraries in the older format of modules ask for them; a file that they look for there is in no bundle.
      define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
    }),
    // What authors and other programs import; browsers load some of it, which have nothing that is built into Node.
    build({
      ...common,
      entryPoints: ['extension', 'client', 'page', 'testing'].map(name => at(`sdk/${name}`)),
      outdir: join(out, 'sdk'),
      target: 'es2023',
      plugins: [compiled(made)],
    }),
    // One file, because nothing else of the program is visible where it runs.
    build({
      ...common,
      entryPoints: [at('sdk/node/extension/runner')],
      outfile: join(out, 'sdk/node/extension/runner.js'),
      target: 'node24',
      plugins: [compiled(made)],
    }),
  ])
  chmodSync(join(out, 'sdk/cli.js'), 0o755)
}
