import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { readJson, writeAtomic } from '../../../sdk/node/files/files.js'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { overlapping } from '../../../sdk/node/tunnels/networks.js'
import { askProgram } from '../../../sdk/node/tunnels/programs.js'

const ip = async (...args: string[]): Promise<string> => askProgram(await needProgram('ip'), args)

/** Gives the interface of user space that has an address the name of its tunnel. */
export const nameInterface = async (address: string, name: string): Promise<void> => {
  const rows = JSON.parse(await ip('-j', 'addr', 'show')) as {
    ifname?: string
    addr_info?: { local?: string }[]
  }[]
  const found = rows.find(
    ({ ifname = '', addr_info = [] }) => /^ipsec\d+$/.test(ifname) && addr_info.some(({ local }) => local === address),
  )?.ifname
  if (found === undefined) return refuse('dependency', `no interface has the address ${address} of the tunnel`)
  await ip('link', 'set', 'dev', found, 'down')
  await ip('link', 'set', 'dev', found, 'name', name)
  await ip('link', 'set', 'dev', name, 'up')
}

/**
 * Sends networks into a tunnel; everything as two halves, so that the machine's own default route stays. Refuses one
 * that goes elsewhere already: that route would be gone after the tunnel.
 */
export const routeInto = async (name: string, networks: readonly string[], source: string): Promise<void> => {
  const parts = networks.flatMap(network => (network === '0.0.0.0/0' ? ['0.0.0.0/1', '128.0.0.0/1'] : [network]))
  for (const part of new Set(parts))
    await ip('route', 'add', part, 'dev', name, 'src', source).catch((error: unknown) => {
      if (!/File exists/.test(String(error))) throw error
      refuse('dependency', `this machine has another route to ${part}: leave it out with routedNetworks`)
    })
}

/** The route to the gateway itself, where a network of the tunnel holds its address. */
export class GatewayRoute {
  readonly #file: string

  constructor(folder: string) {
    this.#file = join(folder, 'gateway-route.json')
  }

  async keep(gateway: string, networks: readonly string[]): Promise<void> {
    if (!overlapping(networks, [gateway])) return
    const [way] = JSON.parse(await ip('-j', 'route', 'get', gateway)) as { gateway?: string; dev?: string }[]
    if (way?.dev === undefined) return
    const route = [gateway, ...(way.gateway === undefined ? [] : ['via', way.gateway]), 'dev', way.dev]
    if ((JSON.parse((await ip('-j', 'route', 'show', gateway)) || '[]') as object[]).length > 0) return
    await writeAtomic(this.#file, JSON.stringify(route))
    await ip('route', 'add', ...route)
  }

  async remove(): Promise<void> {
    const route = await readJson<string[]>(this.#file)
    if (!route) return
    // The network of the machine may have changed: then it is gone.
    await ip('route', 'del', ...route).catch(() => undefined)
    await rm(this.#file, { force: true })
  }
}
