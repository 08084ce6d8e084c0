import { readFile } from 'node:fs/promises'
import { plainAddress } from '../addresses.js'

const ESTABLISHED = '01'

/** One row of the system's table of connections. */
interface Row {
  readonly address: string
  readonly port: number
  readonly far: string
  readonly farPort: number
  readonly uid: number
}

/**
 * The operating-system user who opened a connection within this machine, by its source port and its possible
 * destination ports. Undefined if the table has no such connection.
 */
export const ownerOfPort = async (
  port: number,
  to: readonly number[],
  tables: readonly string[] = ['/proc/net/tcp', '/proc/net/tcp6'],
): Promise<number | undefined> => {
  for (const table of tables) {
    const text = await readFile(table, 'latin1').catch(() => '')
    const row = rowsOf(text).find(
      one => one.port === port && to.includes(one.farPort) && isLoopback(one.address) && isLoopback(one.far),
    )
    if (row) return row.uid
  }
  return undefined
}

/** Whether this system lists its connections. */
export const showsConnections = process.platform === 'linux'

const rowsOf = (table: string): Row[] =>
  table
    .split('\n')
    .slice(1)
    .flatMap((line): Row[] => {
      const [, near = '', far = '', state, , , , uid] = line.trim().split(/\s+/)
      if (state !== ESTABLISHED) return []
      return [
        { address: addressOf(near), port: portOf(near), far: addressOf(far), farPort: portOf(far), uid: Number(uid) },
      ]
    })

const portOf = (end: string): number => Number.parseInt(end.split(':')[1] ?? '', 16)

/** The table writes addresses as 32-bit words in the machine's own order. */
const addressOf = (end: string): string => {
  const words = (end.split(':')[0] ?? '').match(/.{8}/g) ?? []
  const bytes = words.flatMap(word =>
    word
      .match(/../g)!
      .reverse()
      .map(byte => Number.parseInt(byte, 16)),
  )
  const text =
    bytes.length === 4
      ? bytes.join('.')
      : Array.from({ length: 8 }, (_, at) => (bytes[at * 2]! * 256 + bytes[at * 2 + 1]!).toString(16)).join(':')
  return plainAddress(text) ?? text
}

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '0:0:0:0:0:0:0:1'
