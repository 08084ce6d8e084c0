import { build } from 'esbuild'
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve as absolute } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const WEB = 'plugins/console/web'

/**
 * Leaves of marked what the console uses, its lexer: the renderer of HTML and the default instance would be bundled
 * too, because that instance is made when the module is loaded.
 */
const markedLexer = {
  name: 'marked-lexer',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/marked\.esm\.js$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8')
      const lexer = text.match(/[{,](\w+) as Lexer[,}]/)?.[1]
      const end = text.search(/var (\w+)=new \w+;function \w+\(\w+,\w+\)\{return \1\.parse\(/)
      if (!lexer || end < 0) throw new Error('this version of marked ends in another way: see markedLexer')
      return { contents: `${text.slice(0, end)}export{${lexer} as Lexer}` }
    }),
}

/** Has each part that is loaded later import what most parts share, which then comes in one file. */
const coreFirst = {
  name: 'core-first',
  setup: ({ onLoad, onResolve, resolve }) => {
    onResolve({ filter: /^\./ }, async ({ path, kind, ...from }) => {
      if (kind !== 'dynamic-import') return undefined
      const { path: found } = await resolve(path, { ...from, kind: 'import-statement' })
      return { path: relative('.', found), namespace: 'later' }
    })
    onLoad({ filter: /.*/, namespace: 'later' }, ({ path }) => ({
      contents: `import './${WEB}/core.js'\nexport * from './${path}'`,
      loader: 'ts',
      resolveDir: absolute('.'),
    }))
  },
}

/** The title of a guide: its first heading. */
const titleOf = text =>
  text
    .match(/^# +(.+)$/m)?.[1]
    .replace(/[`*]/g, '')
    .trim()

/** What people read about the sandbox: the guides of the groups, and those of who runs it or writes for it. */
export const GUIDES = [
  'kernel/{README,WALL}.md',
  'plugins/*/README.md',
  'sdk/{GLOSSARY,PERMISSIONS,README,REFERENCE}.md',
]

/** The name of a guide in addresses: its group, or its folder with its own name. */
const guideName = file =>
  [basename(dirname(file)), basename(file, '.md').toLowerCase()].filter(part => part !== 'readme').join('-')

/** The guides: `guides:all` lists them, and each is a part of its own that is loaded when it is read. */
const guides = {
  name: 'guides',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^guides:/ }, ({ path }) => ({ path: path.slice('guides:'.length), namespace: 'guides' }))
    onLoad({ filter: /.*/, namespace: 'guides' }, ({ path }) => {
      if (path !== 'all') return { contents: readFileSync(path), loader: 'text' }
      const entries = globSync(GUIDES)
        .sort()
        .map(file => {
          const name = guideName(file)
          const about = { file, name, title: titleOf(readFileSync(file, 'utf8')) ?? name }
          return `{ ...${JSON.stringify(about)}, load: async () => (await import('guides:${file}')).default }`
        })
      return { contents: `export const GUIDES = [${entries.join()}]`, resolveDir: absolute('.') }
    })
  },
}

/** A script in one piece. */
const alone = async entry => {
  const { outputFiles } = await build({
    entryPoints: [join(WEB, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    tsconfig: join(WEB, 'tsconfig.json'),
    logLevel: 'warning',
  })
  return outputFiles[0].text.trim()
}

/** Bundles the console into a folder: files whose names contain a hash, compressed, and the page that loads them. */
export const buildWeb = async folder => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const { metafile } = await build({
    entryPoints: { main: join(WEB, 'main.tsx'), style: join(WEB, 'style/main.css'), icon: join(WEB, 'style/icon.svg') },
    outdir: folder,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    loader: { '.svg': 'copy' },
    tsconfig: join(WEB, 'tsconfig.json'),
    publicPath: '/console/',
    metafile: true,
    plugins: [markedLexer, coreFirst, guides],
    logLevel: 'warning',
  })
  const outputs = Object.entries(metafile.outputs)
  const builtFrom = entry => basename(outputs.find(([, { entryPoint }]) => entryPoint === `${WEB}/${entry}`)[0])
  const worker = join(folder, 'service-worker.js')
  writeFileSync(worker, await alone('worker/service-worker.ts'))
  for (const file of [...outputs.map(([name]) => name), worker]) {
    const bytes = readFileSync(file)
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
    writeFileSync(
      `${file}.br`,
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    )
  }
  writeFileSync(
    join(folder, 'index.html'),
    readFileSync(join(WEB, 'index.html'), 'utf8')
      .replace('{{script}}', `/console/${builtFrom('main.tsx')}`)
      .replace('{{icon}}', `/console/${builtFrom('style/icon.svg')}`)
      .replace('{{style}}', `/console/${builtFrom('style/main.css')}`),
  )
  // The chat of other sites' pages, which group automations serves.
  mkdirSync(join(folder, 'widget'))
  writeFileSync(join(folder, 'widget/widget.js'), await alone('widget/widget.ts'))
  const script = await alone('frame/boot.ts')
  writeFileSync(
    join(folder, 'frame.html'),
    // The policy of the frame names the hash of everything between the tags.
    readFileSync(join(WEB, 'frame/frame.html'), 'utf8').replace(
      /<script>[^]*<\/script>/,
      () => `<script>${script}</script>`,
    ),
  )
  writeFileSync(join(folder, 'outputs.json'), JSON.stringify(metafile.outputs))
}
