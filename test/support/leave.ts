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

// What tap loads before a test file for mocks and coverage, which no test uses, takes longer than most files do; forked
// programs would load it too.
const LOADED = /\/@tapjs\/(mock|processinfo)\/dist\/esm\/import\.mjs$/
const hooks = registerHooks({
  resolve: (name, context, next) => {
    if (LOADED.test(name)) return { url: 'data:text/javascript,', format: 'module', shortCircuit: true }
    if (name.endsWith('.test.js')) hooks.deregister()
    return next(name, context)
  },
})
process.execArgv = process.execArgv.filter(option => !LOADED.test(option))
