import { enableCompileCache, registerHooks } from 'node:module'

// Loaded before anything else in the process of every test file (`test-env` of tap).

// Ends the process once nothing is left to do. By itself Node then waits, with a busy loop, for requests of sockets
// that nobody answers any more, and now and then for ever.
process.once('beforeExit', () => process.on('exit', () => process.exit()))

// Every test file loads the same program.
enableCompileCache(new URL('../../compiled/', import.meta.url).pathname)

// tap follows each promise to know which test an uncaught error belongs to: a tenth of the work of a test with a daemon
// in it. Here an uncaught error ends the process: the test file fails, and Node prints the stack. The hook stays, since
// Node resolves the name more than once.
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier !== 'async-hook-domain') return next(specifier, context)
    return { url: 'data:text/javascript,export class Domain { destroy() {} }', format: 'module', shortCircuit: true }
  },
})

// tap notes each file that a test, and every program the test starts, loads: for coverage, which is off. It costs a
// quarter of a second a test file, and doubles the start of a small program. This pattern has it note none.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/^/'
delete process.env.NODE_OPTIONS
