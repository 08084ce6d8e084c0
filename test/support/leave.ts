import { enableCompileCache } from 'node:module'

// Loaded before anything else in the process of every test file (`test-env` of tap).

// Ends the process once nothing is left to do. By itself Node then waits, with a busy loop, for requests of sockets
// that nobody answers any more, and now and then for ever.
process.once('beforeExit', () => process.on('exit', () => process.exit()))

// Every test file loads the same program.
enableCompileCache(new URL('../../compiled/', import.meta.url).pathname)

// tap notes each file that a test, and every program the test starts, loads: for coverage, which is off. It costs a
// quarter of a second a test file, and doubles the start of a small program. This pattern has it note none.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/^/'
delete process.env.NODE_OPTIONS
