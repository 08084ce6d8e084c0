// Loaded before every test file (`node-arg` of tap): ends its process once nothing is left to do.
// By itself Node then waits, with a busy loop, for requests of sockets that nobody answers any more, and now and then for ever.
process.once('beforeExit', () => process.on('exit', () => process.exit()))
