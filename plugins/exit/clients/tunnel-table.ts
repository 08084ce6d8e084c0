import { refuse } from '../../../sdk/index.js'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { askProgram } from '../../../sdk/node/tunnels/programs.js'

/** A tunnel whose traffic goes by a table of its own. */
export interface TableTunnel {
  readonly interface: string
  readonly address: string
  readonly table: number
}

/** What is used where the route into the tunnel is gone. */
const LAST = '4278198272'

const ip = async (...args: string[]): Promise<string> => askProgram(await needProgram('ip'), args)
const rows = <T>(text: string): T[] => JSON.parse(text.trim() || '[]') as T[]

interface RuleRow {
  readonly priority?: number
  readonly table?: string
}
interface RouteRow {
  readonly dst?: string
  readonly dev?: string
}

/** Gives an interface that its client left bare its address. */
export const giveAddress = async (name: string, address: string): Promise<void> => {
  await ip('addr', 'add', `${address}/32`, 'dev', name)
  await ip('link', 'set', 'dev', name, 'addrgenmode', 'none')
  await ip('link', 'set', 'dev', name, 'up')
}

/**
 * Sends what is bound to the address of a tunnel into it, by a table of its own: the main one stays as it is. Without
 * the tunnel such packets go nowhere.
 */
export const addTable = async ({ interface: name, address, table }: TableTunnel): Promise<void> => {
  await removeTable(table)
  await ip('route', 'add', 'unreachable', 'default', 'metric', LAST, 'table', String(table))
  await ip('route', 'add', 'default', 'dev', name, 'table', String(table))
  await ip('rule', 'add', 'from', address, 'lookup', String(table))
  const leak = await leakOf(name)
  if (leak !== undefined) refuse('dependency', leak)
}

/** Removes the rules and routes of a table; what is gone already is fine. */
export const removeTable = async (table: number): Promise<void> => {
  const rules = rows<RuleRow>(await ip('-j', 'rule', 'show'))
  for (const rule of rules)
    if (rule.table === String(table))
      await ip('rule', 'del', 'priority', String(rule.priority), 'lookup', String(table))
  // A table without routes does not exist for `ip`.
  const routes = await ip('-j', 'route', 'show', 'table', String(table)).catch(() => '')
  if (rows(routes).length > 0) await ip('route', 'flush', 'table', String(table))
}

/** Whether the rule and the route of a tunnel are there. */
export const hasTable = async ({ interface: name, table }: TableTunnel): Promise<boolean> => {
  const rules = rows<RuleRow>(await ip('-j', 'rule', 'show'))
  if (!rules.some(rule => rule.table === String(table))) return false
  const routes = rows<RouteRow>(await ip('-j', 'route', 'show', 'table', String(table)).catch(() => ''))
  return routes.some(({ dst, dev }) => dst === 'default' && dev === name)
}

/** Why an interface of an exit is dangerous: the machine's own traffic could go into it. */
export const leakOf = async (name: string): Promise<string | undefined> => {
  const [four, six] = await Promise.all([
    ip('-j', 'route', 'show', 'table', 'main'),
    ip('-j', '-6', 'route', 'show', 'table', 'main').catch(() => ''),
  ])
  const found = [...rows<RouteRow>(four), ...rows<RouteRow>(six)].find(
    ({ dst = '', dev }) => dev === name && !/^(?:fe80|ff00):/.test(dst),
  )
  return found && `the main route table has a route into ${name}: ${found.dst}`
}
