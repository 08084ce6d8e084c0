import { refuse, Refusal, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { DESIRED, RUNNING_FILE, type RunningState } from '../../../sdk/node/deploy/desired.js'
import { kindOfEntry, secretsOf } from '../../../sdk/node/deploy/entries.js'
import { DEPLOY_KINDS } from '../../../sdk/node/deploy/kinds.js'
import { openFile, openPath } from '../../../sdk/node/files/open-path.js'
import type { CliLine } from '../../cli/contract.js'
import type { KindEntry, KindStep } from '../../capabilities/contract.js'
import type { InventoryService } from '../contract.js'
import type { Inventory } from '../inventory.js'
import type { InventoryKindCalls } from './contract.js'
import { entryNameOf, kindStatus, optionValues } from './entry-values.js'

type ServiceCalls = Pick<InventoryKindCalls, `inventory.service.${string}` & keyof InventoryKindCalls>

const LARGEST = 1024 * 1024

/** The service that a connection describes. */
const serviceOf = ({ id, config }: Pick<KindEntry, 'id' | 'config'>): InventoryService => {
  const { service, on, expose, ...options } = config
  const known = DEPLOY_KINDS.find(each => each.kind === 'service' && each.id === service)
  return {
    kind: 'service',
    service: String(service ?? ''),
    name: entryNameOf(id),
    values: optionValues(known, options),
    on: String(on ?? ''),
    expose: String(expose ?? ''),
  }
}

/** A line of an apply as a person reads it; undefined: it says nothing new. */
const wordsOf = ({ kind, message, phase, state, id, action, detail }: CliLine): string | undefined => {
  if (kind === 'log' || kind === 'error') return String(message)
  if (kind !== 'node' || state === 'start') return undefined
  const words = [phase, id, action, state === 'failed' ? 'failed' : undefined, detail]
  return words.filter(word => word !== undefined).join(' ')
}

/** Serves the kind `service`: an entry of the inventory, and the apply that makes it run. */
export const serviceKindCalls = (
  host: Pick<Host, 'call' | 'serves' | 'place'>,
  inventory: Inventory,
): Handlers<ServiceCalls> => {
  /** Whether it ran when what runs was recorded last. */
  const ran = async (id: string): Promise<boolean> => {
    const tree = { root: host.place.workspace, reach: undefined, readsGit: false }
    await using found = await openPath(tree, `${DESIRED}/${RUNNING_FILE}`)
    if (!found?.stats.isFile() || found.stats.size > LARGEST) return false
    await using file = await openFile(found, RUNNING_FILE)
    try {
      const { nodes } = JSON.parse(await file.readFile('utf8')) as RunningState
      return nodes.some(({ name }) => name === id)
    } catch {
      return false
    }
  }

  const status = async (id: string, context: Context) => {
    const list = await inventory.list(context).catch((error: unknown) => {
      if (error instanceof Refusal) return kindStatus('error', error.message)
      throw error
    })
    if ('state' in list) return list
    const entry = list.entries.find(({ name }) => name === id)
    if (entry?.kind !== 'service') return kindStatus('error', `the inventory has no service ${id}`)
    const required = kindOfEntry(entry) ? secretsOf(entry).filter(each => each.required) : []
    const missing = required.find(({ key }) => entry.secrets.every(each => each.key !== key || !each.set))
    if (missing)
      return kindStatus('pending', `store its ${missing.option} among the secrets as ${missing.key}, then apply`)
    return (await ran(id)) ? kindStatus('active') : kindStatus('pending', 'it does not run yet: apply the deployment')
  }

  return {
    'inventory.service.check': async (given, context) => {
      await inventory.check(serviceOf(given), context)
      if (!(await host.serves('cli.apply'))) refuse('unavailable', 'the command line is not served: group cli')
      return { ok: true }
    },
    async *'inventory.service.apply'(given, context): AsyncGenerator<KindStep> {
      await inventory.put(serviceOf(given), context)
      yield { kind: 'log', message: `the inventory has ${given.id}` }
      const before = await status(given.id, context)
      if (before.detail?.startsWith('store')) return yield { kind: 'status', status: before }
      try {
        await host.call('cli.apply', undefined, { as: context })
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        // The entry is there all the same: what is missing can be done later.
        return yield { kind: 'status', status: kindStatus('pending', error.message) }
      }
      for await (const line of await host.call('cli.follow', undefined, { signal: context.signal })) {
        const message = wordsOf(line)
        if (message !== undefined) yield { kind: 'log', message }
      }
      yield { kind: 'status', status: await status(given.id, context) }
    },
    'inventory.service.status': ({ id }, context) => status(id, context),
    'inventory.service.release': async ({ id }, context) => {
      const { entries } = await inventory.list(context)
      if (entries.some(({ name, kind }) => name === id && kind === 'service')) await inventory.remove(id, context)
      return { ok: true }
    },
  }
}
