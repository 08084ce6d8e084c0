import { enableCompileCache, registerHooks } from 'node:module'

// Loaded before anything else in the process of every test file (`test-env` of tap).

// Ends the process once nothing is left to do. Otherwise Node waits, in a busy loop, for requests of sockets
// that nobody answers any more, sometimes forever.
process.once('beforeExit', () => process.on('exit', () => process.exit()))

// Every test file loads the same program.
enableCompileCache(new URL('../../compiled/', import.meta.url).pathname)

// For coverage, which is off, tap records each file that a test and the programs it starts load. This costs a
// quarter of a second per test file, and doubles the start time of a small program. This pattern excludes all files.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/^/'
delete process.env.NODE_OPTIONS

// What tap loads before a test file for TypeScript, mocks and coverage, which no test uses, takes longer than most
// files do, and 120 MB; forked programs would load it too. Built modules name each other by their files, so that Node
// need not search for them.
const LOADED = /\/@tapjs\/(mock|processinfo|typescript)\/dist\/esm\/import\.mjs$/
const BUILT = /^(?!.*\/node_modules\/).*\/dist\//
registerHooks({
  resolve: (name, context, next) => {
    if (LOADED.test(name)) return { url: 'data:text/javascript,', format: 'module', shortCircuit: true }
    const from = context.parentURL
    if (/^\.\.?\/.*\.js$/.test(name) && from !== undefined && BUILT.test(from))
      return { url: new URL(name, from).href, format: 'module', shortCircuit: true }
    return next(name, context)
  },
})
process.execArgv = process.execArgv.filter(option => !LOADED.test(option))
