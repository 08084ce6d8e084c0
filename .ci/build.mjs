// Compiles into dist/ what changed since the last time, and bundles the programs into dist/bundle/. Without a change
// both are left alone: a daemon may be running from them.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { bundle } from './bundle.mjs'
import { node } from './node.mjs'
import { bundleTap } from './tap.mjs'
import { buildTypes } from './types.mjs'
import { buildWeb } from './web.mjs'

const STAMP = 'dist/.built'
const STATE = 'dist/.tsbuildinfo'
const sources = globSync(['{kernel,plugins,sdk,openapi,test}/**/*.ts', 'plugins/**/*.{json,tsx,css,html}'], {
  exclude: ['test/fixtures/**'],
}).sort()
const readFile = file => (existsSync(file) ? readFileSync(file, 'utf8') : '')
const hashOf = (files, beginning = '') => {
  const digest = createHash('sha256').update(beginning)
  for (const file of files) digest.update(file).update('\0').update(readFileSync(file)).update('\0')
  return digest.digest('hex')
}
/** With another compiler, library or setting everything is compiled anew. */
const tools = hashOf(
  [
    'tsconfig.json',
    'sdk/tsconfig.json',
    'package-lock.json',
    ...globSync('.ci/{build,bundle,node,tap,types,web}.mjs').sort(),
  ],
  process.version,
)
const wanted = `${tools} ${hashOf(sources)}`
const before = existsSync(STAMP) ? readFileSync(STAMP, 'utf8') : ''

/**
 * Has the compiler write a validator again when something it imports, however far away, has changed: the compiler
 * itself looks only as far as the files whose own exports changed.
 */
const renewValidators = () => {
  const state = JSON.parse(readFileSync(STATE, 'utf8'))
  const infos = state.fileInfos.map(info => (typeof info === 'string' ? { version: info } : info))
  const texts = state.fileNames.map(name => (name.includes('node_modules') ? undefined : readFile(`dist/${name}`)))
  const changed = at =>
    texts[at] !== undefined && createHash('sha256').update(texts[at]).digest('hex') !== infos[at].version
  const imports = new Map(
    state.referencedMap.map(([file, list]) => [file - 1, state.fileIdsList[list - 1].map(id => id - 1)]),
  )
  const reaches = (at, seen = new Set()) =>
    !seen.has(at) && Boolean(seen.add(at)) && (changed(at) || (imports.get(at) ?? []).some(next => reaches(next, seen)))
  for (const [at, text] of texts.entries()) {
    if (/\btypia\./.test(text) && reaches(at))
      state.fileInfos[at] = { ...infos[at], signature: infos[at].signature ?? infos[at].version, version: '' }
  }
  writeFileSync(STATE, JSON.stringify(state))
}

if (before !== wanted) {
  const anew = !before.startsWith(`${tools} `) || !existsSync(STATE)
  if (anew) rmSync('dist', { recursive: true, force: true })
  else {
    renewValidators()
    writeFileSync(STAMP, `${tools} `)
  }
  const compiler = [
    'node_modules/ts-patch/bin/tspc.js',
    '-p',
    'tsconfig.json',
    '--incremental',
    '--tsBuildInfoFile',
    STATE,
  ]
  const webCompiler = [
    'node_modules/typescript/bin/tsc',
    '-p',
    'plugins/console/web',
    '--incremental',
    '--tsBuildInfoFile',
    'dist/.tsbuildinfo-web',
  ]
  // The first takes as long as all others, and each one processor.
  const others = async () => {
    await node(...webCompiler)
    await buildTypes(anew)
    if (anew) await bundleTap('dist')
  }
  const ended = await Promise.allSettled([node(...compiler), others()])
  const failed = ended.filter(({ status }) => status === 'rejected')
  for (const { reason } of failed) console.error(reason.message)
  if (failed.length) process.exit(1)
  const compiled = new Set(sources.map(file => `dist/${file.replace(/\.ts$/, '.js')}`))
  for (const file of globSync('dist/{kernel,plugins,sdk,openapi,test}/**/*.js')) if (!compiled.has(file)) rmSync(file)
  // Names of what is bundled, and of the compile cache of tests, change with what is in them: old ones would stay for
  // ever.
  for (const folder of ['dist/bundle', 'dist/compiled']) rmSync(folder, { recursive: true, force: true })
  await Promise.all([bundle('dist'), buildWeb('dist/bundle/console')])
  await node('dist/openapi/describe-build.js', 'dist', 'dist/bundle')
  writeFileSync(STAMP, wanted)
}
