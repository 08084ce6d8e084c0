import { build } from 'esbuild'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const WEB = 'plugins/console/web'

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
    logLevel: 'warning',
  })
  const outputs = Object.entries(metafile.outputs)
  const builtFrom = entry => basename(outputs.find(([, { entryPoint }]) => entryPoint === `${WEB}/${entry}`)[0])
  for (const [file] of outputs) {
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
  const frame = await build({
    entryPoints: [join(WEB, 'frame/boot.ts')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    tsconfig: join(WEB, 'tsconfig.json'),
    logLevel: 'warning',
  })
  const script = frame.outputFiles[0].text.trim()
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
