import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** What is compiled for Node: a module of `dist/` for each. */
export const sources = () =>
  globSync('{kernel,plugins,sdk,openapi,test}/**/*.ts', { exclude: ['test/fixtures/**'] })
    .filter(file => !file.endsWith('.d.ts'))
    .sort()

/** What else a step of the build reads. */
export const alsoRead = () => [
  'package-lock.json',
  'tsconfig.json',
  ...globSync(['.ci/*.mjs', 'sdk/tsconfig.json', 'plugins/**/*.json']),
  ...globSync(['plugins/console/web/**/*.{tsx,css,html,svg}', '{kernel,plugins/*,sdk}/*.md']),
]

/** The hash of texts. */
export const hashed = (...texts) => {
  const digest = createHash('sha256')
  for (const text of texts) digest.update(text).update('\0')
  return digest.digest('hex')
}

/** The hash of files, with their names. */
export const hashOfFiles = files =>
  hashed(process.version, ...[...files].sort().flatMap(file => [file, readFileSync(file)]))

/** Writes a file and the folders above it. */
export const put = (file, text) => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** Runs a step unless its stamp, a file, says that it ran on these files before. */
export const step = async (name, files, run) => {
  const stamp = `dist/.stamps/${name}`
  const wanted = hashOfFiles(files)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return false
  rmSync(stamp, { force: true })
  await run()
  put(stamp, wanted)
  return true
}
