// The translator: a server on loopback that serves models in the protocols of loops, with credentials that the daemon
// lends it over its standard streams for one request. It ends with the daemon.
import { declareListeners } from '../../../sdk/node/network/own-listeners.js'
import { DaemonLink } from './daemon-link.js'
import { listenOnLoopback } from './http-server.js'

const link = new DaemonLink(process.stdout)
const { server, port } = await listenOnLoopback(link, Number(process.argv[2] ?? 0))
declareListeners(() => link.listeners)
link.tell({ news: 'listening', port })
process.stdout.on('error', () => process.exit())
// The daemon decides how its programs end.
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
await link.follow(process.stdin)
server.close()
process.exit()
