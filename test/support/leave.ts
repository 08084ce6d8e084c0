import { enableCompileCache } from 'node:module'

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
