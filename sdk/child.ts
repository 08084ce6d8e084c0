// The entry of a plugin that runs in a separate process. Started by kernel/process.ts.
import { createHost, type Activate, type Place } from './host.js'
import { keepCompiled } from './node/files/state-folder.js'
import { findOwnImports } from './node/programs/own-imports.js'
import { declareTurnWritable } from './node/programs/turn-writable.js'
import { Peer, type Pipe } from './wire.js'

keepCompiled(process.env)
findOwnImports(new URL('../', import.meta.url).href)
const [, , id = '', entry = '', place = '{}'] = process.argv
const peer = new Peer(process as unknown as Pipe)
const where = JSON.parse(place) as Place
declareTurnWritable([where.workspace, where.data, ...where.grants.write])
const { host, answer } = createHost(id, where, peer)
peer.answer = answer
// Without the daemon a message fails or the channel closes, whichever is seen first.
for (const gone of ['disconnect', 'error']) process.once(gone, () => process.exit(0))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
try {
  const plugin = (await import(entry)) as { activate: Activate }
  await plugin.activate(host)
  await peer.request('host.ready', {})
} catch (error) {
  await peer.request('host.failed', {
    message: error instanceof Error ? (error.stack ?? error.message) : String(error),
  })
  process.exit(1)
}
