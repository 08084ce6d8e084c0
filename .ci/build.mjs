// Builds what changed since the last time: `node .ci/build.mjs`, or with the word `program` only what a start needs.
// Without a change files are left alone: a daemon may be running from them.
import { globSync, rmSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { bundle } from './bundle.mjs'
import { modules } from './modules.mjs'
import { node } from './node.mjs'
import { alsoRead, hashOfFiles, put, sources, step } from './sources.mjs'
import { bundleTap } from './tap.mjs'
import { buildTypes } from './types.mjs'
import { validators } from './validators.mjs'
import { buildWeb } from './web.mjs'

const isTest = file => file.startsWith('test/')
const isPage = file => file.startsWith('plugins/console/web/')
const describe = folder => node('dist/bundle/openapi/describe-build.js', folder)

/** The program that people run: `dist/bundle/`. */
export const buildProgram = async (progress = () => {}) => {
  const all = sources()
  const made = await validators(all, progress)
  const read = [...all.filter(file => !isTest(file)), ...alsoRead()]
  const program = () =>
    step(
      'program',
      read.filter(file => !isPage(file)),
      async () => {
        progress('the program is bundled')
        await bundle('.', 'dist/bundle', made)
        await describe('dist/bundle')
      },
    )
  await Promise.all([program(), step('pages', read, () => buildWeb('dist/bundle/console'))])
  return made
}

/** The program, and what tests and authors of extensions need besides it. */
const buildAll = async () => {
  const made = await buildProgram()
  const all = sources()
  const program = [...all.filter(file => !isTest(file)), ...alsoRead()]
  await Promise.all([
    modules(all, made).then(() => step('described', program, () => describe('dist'))),
    step('types', program, buildTypes),
    step('tap', ['package-lock.json', '.ci/tap.mjs'], () => bundleTap('dist')),
  ])
}

if (import.meta.url === pathToFileURL(process.argv[1]).href)
  await (process.argv[2] === 'program' ? buildProgram() : buildAll())
