// Writes what a built program says of itself: `node dist/openapi/describe-build.js FOLDER…`, at the end of a build.
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BUILD_FILE, type BuildInfo } from '../sdk/build.js'
import type { Contract } from '../sdk/contract.js'
import { shapesOf } from './shapes.js'

// The folder of the compiled modules, each in a file of its own.
const root = join(import.meta.dirname, '..')

const buildOf = (folder: string): string => {
  const digest = createHash('sha256')
  for (const file of globSync('{chunks,kernel,plugins,sdk}/**/*.js', { cwd: folder }).sort())
    digest.update(file).update(readFileSync(join(folder, file)))
  return digest.digest('hex').slice(0, 16)
}

const shapes: { [entry: string]: { [call: string]: string } } = {}
for (const entry of globSync('plugins/*/plugin.js', { cwd: root }).sort()) {
  const { contract } = (await import(pathToFileURL(join(root, entry)).href)) as { contract: Contract }
  shapes[entry] = shapesOf(contract)
}
for (const folder of process.argv.slice(2)) {
  const info: BuildInfo = { build: buildOf(folder), shapes }
  writeFileSync(join(folder, BUILD_FILE), JSON.stringify(info))
}
