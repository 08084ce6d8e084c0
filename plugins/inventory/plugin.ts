import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Contract, Host } from '../../sdk/index.js'
import { DEPLOY_KINDS } from '../../sdk/node/deploy/kinds.js'
import { packageVersion } from '../../sdk/node/programs/package.js'
import { inventoryContract, type InventoryCalls } from './contract.js'
import { examples } from './examples.js'
import { CONFIG_FILE, Inventory } from './inventory.js'
import { inventoryKindCalls } from './kinds/calls.js'
import { INVENTORY_KINDS } from './kinds/cards.js'

export const contract: Contract<InventoryCalls> = { ...inventoryContract, examples }

/** Keeps the entries of the deployment configuration. */
export const activate = async (host: Host): Promise<void> => {
  const inventory = new Inventory(host)
  const stampOf = async () => {
    const found = await stat(join(host.place.workspace, CONFIG_FILE)).catch(() => undefined)
    return found && `${found.ino} ${found.size} ${found.mtimeMs}`
  }
  let last = await stampOf()
  const looked = async () => {
    const now = await stampOf()
    if (now === last) return
    last = now
    await inventory.changed()
  }
  host.on(
    'files.changed',
    () => void looked().catch(error => host.log.warn('looking at the inventory failed', { error: String(error) })),
  )
  host.contribute('capabilities.kinds', () => INVENTORY_KINDS)
  await host.serve(inventoryContract, {
    ...inventoryKindCalls(host, inventory),
    'GET /inventory': (_, context) => inventory.list(context),
    'GET /inventory/kinds': async () => ({
      kinds: structuredClone(DEPLOY_KINDS) as (typeof DEPLOY_KINDS)[number][],
      version: await packageVersion(host.place.root),
    }),
    'POST /inventory': (entry, context) => inventory.put(entry, context),
    'DELETE /inventory/{name}': ({ name }, context) => inventory.remove(name, context),
  })
}
