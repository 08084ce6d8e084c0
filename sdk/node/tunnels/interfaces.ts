import { readFile } from 'node:fs/promises'
import { needProgram } from '../programs/run.js'
import { askProgram } from './programs.js'

/** A network interface of this network namespace. */
export interface NetworkInterface {
  readonly rxBytes: number
  readonly txBytes: number
}
/** The addresses and routes of an interface. */
export interface InterfaceRoutes {
  readonly address?: string
  readonly routes: readonly string[]
}

/** The interfaces that exist now, by name. */
export const interfacesNow = async (): Promise<ReadonlyMap<string, NetworkInterface>> => {
  const text = await readFile('/proc/self/net/dev', 'utf8')
  return new Map(
    text.split('\n').flatMap((line): [string, NetworkInterface][] => {
      const [, name, counters = ''] = /^\s*(\S+):\s*(.*)$/.exec(line) ?? []
      const numbers = counters.split(/\s+/).map(Number)
      return name === undefined ? [] : [[name, { rxBytes: numbers[0] ?? 0, txBytes: numbers[8] ?? 0 }]]
    }),
  )
}

export const interfaceExists = async (name: string): Promise<boolean> => (await interfacesNow()).has(name)

interface AddressRow {
  readonly ifname?: string
  readonly addr_info?: readonly { family?: string; local?: string; prefixlen?: number; scope?: string }[]
}
interface RouteRow {
  readonly dst?: string
  readonly dev?: string
  readonly type?: string
  readonly table?: string
}

const rowsOf = <T>(text: string): T[] => JSON.parse(text.trim() || '[]') as T[]

const cidrOf = (dst: string, everything: string): string => {
  if (dst === 'default') return everything
  return dst.includes('/') ? dst : `${dst}/${dst.includes(':') ? 128 : 32}`
}

const isWay = ({ dst = '', type, table }: RouteRow): boolean =>
  table !== 'local' && (type === undefined || type === 'unicast') && dst !== '' && !/^(ff00|fe80):/.test(dst)

/** The addresses and routes of all interfaces, by the name of the interface. */
export const routesNow = async (signal?: AbortSignal): Promise<ReadonlyMap<string, InterfaceRoutes>> => {
  const ip = await needProgram('ip')
  const options = signal ? { signal } : {}
  const [addresses, four, six] = await Promise.all([
    askProgram(ip, ['-j', 'addr', 'show'], options),
    askProgram(ip, ['-j', 'route', 'show', 'table', 'all'], options),
    askProgram(ip, ['-j', '-6', 'route', 'show', 'table', 'all'], options),
  ])
  const routes = [
    ...rowsOf<RouteRow>(four).map(row => ({ row, everything: '0.0.0.0/0' })),
    ...rowsOf<RouteRow>(six).map(row => ({ row, everything: '::/0' })),
  ]
  return new Map(
    rowsOf<AddressRow>(addresses).flatMap(({ ifname, addr_info = [] }): [string, InterfaceRoutes][] => {
      if (ifname === undefined) return []
      const [first] = addr_info
        .filter(({ scope }) => scope !== 'link')
        .toSorted((one, other) => Number(one.family === 'inet6') - Number(other.family === 'inet6'))
      const ways = routes
        .filter(({ row }) => row.dev === ifname && isWay(row))
        .map(({ row, everything }) => cidrOf(row.dst!, everything))
      const address = first?.local === undefined ? undefined : `${first.local}/${first.prefixlen}`
      return [[ifname, { routes: [...new Set(ways)], ...(address !== undefined && { address }) }]]
    }),
  )
}

/** Removes an interface that its program left; one that is gone is fine. */
export const deleteInterface = async (name: string): Promise<void> => {
  if (!(await interfaceExists(name))) return
  await askProgram(await needProgram('ip'), ['link', 'delete', 'dev', name]).catch(async error => {
    if (await interfaceExists(name)) throw error
  })
}

/** Waits until something holds, for at most so many milliseconds; answers whether it does. */
export const holdsWithin = async (ms: number, holds: () => Promise<boolean>): Promise<boolean> => {
  for (const end = Date.now() + ms; ;) {
    if (await holds()) return true
    if (Date.now() >= end) return false
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}
