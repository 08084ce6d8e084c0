import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { shareAmongFiles } from './shared-ends.js'

/** The test of each file, by the address of the file. */
const tests = new Map<string, Test>()
Object.assign(globalThis, { [Symbol.for('sandbox.tests')]: tests })

// What a test file imports as `tap` is its own subtest.
registerHooks({
  resolve: (name, context, next) =>
    name === 'tap' && tests.has(context.parentURL ?? '')
      ? { url: `sandbox-test:${context.parentURL}`, format: 'module', shortCircuit: true }
      : next(name, context),
  load: (url, context, next) =>
    url.startsWith('sandbox-test:')
      ? {
          source: `export default globalThis[Symbol.for('sandbox.tests')].get(${JSON.stringify(url.slice(13))})`,
          format: 'module',
          shortCircuit: true,
        }
      : next(url, context),
})

/** Runs test files one after another in this process, each as a test of its name, in the folder it would have alone. */
export const together = async (files: readonly string[]): Promise<void> => {
  shareAmongFiles(t)
  for (const file of files) {
    const { href } = pathToFileURL(resolve(file))
    await t.test(file, async t => {
      t.testdirName = resolve('.tap/fixtures', file.replaceAll('/', '-'))
      tests.set(href, t)
      await import(href)
    })
  }
}
