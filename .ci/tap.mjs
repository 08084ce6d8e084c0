import { build } from 'esbuild'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * tap follows each promise to know which test an uncaught error belongs to: a tenth of the work of a test with a daemon
 * in it. Without that an uncaught error ends the process: the test file fails, and Node prints the stack.
 */
const untracked = {
  name: 'untracked',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^async-hook-domain$/ }, ({ path }) => ({ path, namespace: 'untracked' }))
    onLoad({ filter: /.*/, namespace: 'untracked' }, () => ({ contents: 'export class Domain { destroy() {} }' }))
  },
}

/** tap leaves the frames of files below this out of stacks. */
const FILE = 'node_modules/@tapjs/tap.mjs'

/** One file starts quicker than 250: tap, as the test files below `folder` import it. */
export const bundleTap = async folder => {
  const out = join(folder, 'node_modules/tap')
  await build({
    entryPoints: ['node_modules/tap/dist/esm/index.js'],
    outfile: join(out, FILE),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    logLevel: 'warning',
    // It loads files that lie beside it.
    external: ['@tapjs/processinfo'],
    plugins: [untracked],
    // Libraries in the older format of modules ask by this name.
    banner: { js: "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);" },
  })
  writeFileSync(join(out, 'package.json'), JSON.stringify({ name: 'tap', main: FILE }))
}
