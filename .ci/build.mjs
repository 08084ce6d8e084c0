// Compiles into dist/, and bundles the programs into dist/bundle/, when a source changed since the last time. Otherwise
// both are left alone: a daemon may be running from them.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { bundle } from './bundle.mjs'

const STAMP = 'dist/.built'
const sources = [...globSync('{kernel,plugins,sdk,openapi,test}/**/*.ts').sort(), 'tsconfig.json', 'package-lock.json', '.ci/build.mjs', '.ci/bundle.mjs']
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

if (built() !== wanted) {
  rmSync('dist', { recursive: true, force: true })
  const { status } = spawnSync(process.execPath, ['node_modules/ts-patch/bin/tspc.js', '-p', 'tsconfig.json'], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  await bundle('dist')
  writeFileSync(STAMP, wanted)
}
