import { enableCompileCache, registerHooks } from 'node:module'

// Loaded before anything else in the process of every test file (`test-env` of tap).

// Ends the process once nothing is left to do. Otherwise Node waits, in a busy loop and sometimes for ever, for
// requests on sockets whose other end does not answer.
process.once('beforeExit', () => process.on('exit', () => process.exit()))

// Every test file loads the same program.
enableCompileCache(new URL('../../compiled/', import.meta.url).pathname)

// tap follows each promise to find the test of an uncaught error, which costs a tenth of the work of a test with a
// daemon. Without it an uncaught error ends the process: the test file fails, and Node prints the stack. Node resolves
// the name more than once, so the hook stays.
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier !== 'async-hook-domain') return next(specifier, context)
    return { url: 'data:text/javascript,export class Domain { destroy() {} }', format: 'module', shortCircuit: true }
  },
})

// For coverage, which is off, tap records each file that a test and its programs load. That costs a quarter of a second
// a test file, and doubles the start of a small program. This pattern excludes every file.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/^/'
delete process.env.NODE_OPTIONS
