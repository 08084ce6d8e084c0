import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { request as askHttp } from 'node:http'
import { request as askHttps, type RequestOptions } from 'node:https'
import { familyOf } from '../../../sdk/node/programs/family.js'

const PATIENCE_MS = 1_500
/** The state of a socket that listens, in the socket tables (proc(5), `/proc/net/tcp`). */
const LISTENS = '0A'
const ANY = /^0+$/
/** 127.0.0.1, as the tables have it: each word in the byte order of the machine. */
const LOOPBACK_4 = /7F$/
const LOOPBACK_6 = '00000000000000000000000001000000'

/** Where a process takes connections from this machine. */
export interface Listening {
  readonly port: number
  readonly host: '127.0.0.1' | '::1'
}

const linesOf = (path: string): string[] => {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(1)
  } catch {
    return []
  }
}

const hostOf = (address: string): Listening['host'] | undefined => {
  if (ANY.test(address)) return '127.0.0.1'
  if (address.length === 8) return LOOPBACK_4.test(address) ? '127.0.0.1' : undefined
  return address === LOOPBACK_6 ? '::1' : undefined
}

/** The listening sockets of the network of a process, by inode. */
const listenersOf = (pid: number): Map<string, Listening> => {
  const found = new Map<string, Listening>()
  for (const line of ['tcp', 'tcp6'].flatMap(table => linesOf(`/proc/${pid}/net/${table}`))) {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
    const [address = '', port = ''] = local.split(':')
    const host = state === LISTENS ? hostOf(address) : undefined
    if (host) found.set(inode, { host, port: Number.parseInt(port, 16) })
  }
  return found
}

const socketsOf = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
      try {
        const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? []
        return inode ?? []
      } catch {
        return []
      }
    })
  } catch {
    return []
  }
}

/** Where a process and its descendants listen for connections from this machine, lowest port first. */
export const listeningOf = (leader: number): Listening[] => {
  const tables = new Map<string, Map<string, Listening>>()
  const found = new Map<number, Listening>()
  for (const pid of familyOf(leader)) {
    const sockets = socketsOf(pid)
    if (sockets.length === 0) continue
    let network: string
    try {
      network = readlinkSync(`/proc/${pid}/ns/net`)
    } catch {
      continue
    }
    const table = tables.get(network) ?? listenersOf(pid)
    tables.set(network, table)
    for (const inode of sockets) {
      const listening = table.get(inode)
      if (listening) found.set(listening.port, listening)
    }
  }
  return [...found.values()].sort((a, b) => a.port - b.port)
}

const answers = ({ host, port }: Listening, ask: typeof askHttps): Promise<boolean> =>
  new Promise(resolve => {
    const options: RequestOptions = {
      host,
      port,
      path: '/',
      headers: { host: `localhost:${port}`, connection: 'close' },
      timeout: PATIENCE_MS,
      // A development server makes its own certificate.
      rejectUnauthorized: false,
    }
    const asked = ask(options)
    asked.on('response', response => {
      response.destroy()
      resolve(true)
    })
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(false))
    asked.on('close', () => resolve(false))
    asked.end()
  })

/** Whether HTTP or HTTPS answers there, with any status. */
export const answersHttp = async (listening: Listening): Promise<boolean> =>
  (await answers(listening, askHttp)) || answers(listening, askHttps)
