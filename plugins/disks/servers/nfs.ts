import { randomInt } from 'node:crypto'
import { ownEnv, ownProgram, run } from '../../../sdk/node/programs/run.js'
import type { OfferedShare } from '../contract.js'
import { connectTo, failureWords } from './address.js'

/** What an NFS server answered. */
export interface NfsAnswer {
  readonly reachable: boolean
  readonly latencyMs?: number
  readonly shares: OfferedShare[]
  readonly detail?: string
}

const PORT = 2049
const PROGRAM = 100_003
const VERSIONS = [4, 3] as const
const LAST_FRAGMENT = 0x8000_0000
const MOST_SHARES = 500
const ASK_MS = 8_000

/** Asks an NFS server whether it is one, and with `showmount` what it exports. */
export const askNfs = async (server: string, address: string, signal: AbortSignal): Promise<NfsAnswer> => {
  let latencyMs: number | undefined
  try {
    for (const version of VERSIONS) {
      const opened = await connectTo(address, PORT, signal)
      latencyMs = opened.latencyMs
      try {
        if (await answersNull(opened.socket, version))
          return { reachable: true, latencyMs, ...(await exportsOf(server, signal)) }
      } finally {
        opened.socket.destroy()
      }
    }
    return { reachable: false, latencyMs: latencyMs!, shares: [], detail: 'it does not answer as an NFS server' }
  } catch (error) {
    return { reachable: false, ...(latencyMs !== undefined && { latencyMs }), shares: [], detail: failureWords(error) }
  }
}

/** Makes the NULL call (RFC 5531 and RFC 7530): a server of any version that it speaks accepts it. */
const answersNull = async (
  socket: AsyncIterable<Buffer> & { write(bytes: Buffer): unknown },
  version: number,
): Promise<boolean> => {
  const xid = randomInt(2 ** 31)
  const words = [xid, 0, 2, PROGRAM, version, 0, 0, 0, 0, 0]
  const message = Buffer.alloc(4 + words.length * 4)
  message.writeUInt32BE(LAST_FRAGMENT + words.length * 4)
  words.forEach((word, at) => message.writeUInt32BE(word, 4 + at * 4))
  socket.write(message)
  let got = Buffer.alloc(0)
  for await (const piece of socket) {
    got = Buffer.concat([got, piece])
    if (got.length < 28) continue
    const [id, type, replied, , , accepted] = [4, 8, 12, 16, 20, 24].map(at => got.readUInt32BE(at))
    return id === xid && type === 1 && replied === 0 && accepted === 0
  }
  return false
}

const exportsOf = async (server: string, signal: AbortSignal): Promise<{ shares: OfferedShare[]; detail?: string }> => {
  const showmount = await ownProgram('showmount')
  if (showmount === undefined)
    return { shares: [], detail: 'its exports are not listed without showmount (apt-get install nfs-common)' }
  const options = { cwd: '/', env: await ownEnv({ LC_ALL: 'C' }), signal, timeoutMs: ASK_MS, maxBytes: 262_144 }
  const { code, stdout } = await run(showmount, ['-e', '--no-headers', server], options)
  if (code !== 0) return { shares: [], detail: 'it does not list its exports' }
  const lines = stdout
    .toString()
    .split('\n')
    .filter(line => line.startsWith('/'))
  return { shares: lines.slice(0, MOST_SHARES).map(line => shareOf(line)) }
}

const shareOf = (line: string): OfferedShare => {
  const [name = '', clients] = line.split(/(?<!\s)\s+(?=\S+$)/)
  return { name: name.trim(), ...(clients !== undefined && { comment: `for ${clients}` }) }
}
