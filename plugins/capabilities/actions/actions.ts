import { refuse, type Handlers } from '../../../sdk/index.js'
import type { Entries, RecordedEntry } from '../records/entries.js'
import { masked } from '../records/masking.js'
import { actionProvider } from './action-key.js'
import type { ActionCalls, ConnectionAction } from './contract.js'

/** The calls with which a person's yes is carried out by a connection. */
export const actionCalls = (entries: () => Pick<Entries, 'all' | 'open'>): Handlers<ActionCalls> => {
  const open = async (found: RecordedEntry) => {
    const { entry, problem } = await entries().open(found)
    return problem ? refuse('dependency', `${found.id}: ${problem.detail}`) : entry
  }
  return {
    'capabilities.checkAction': async ({ asks = false, ...action }) => {
      const found = meant(await entries().all(), action)
      if (!found) return {}
      if (typeof found === 'string') return { problem: found }
      const { id: capability, kind, handler } = found
      if (!handler?.actions) return { capability, problem: `connections of kind ${kind} carry no actions out` }
      const { entry, problem } = await entries().open(found)
      if (problem) return { capability, problem: `${capability}: ${problem.detail}` }
      return { capability, ...(await handler.actions.check(entry, action, asks)) }
    },
    'capabilities.carryOut': async ({ idempotencyKey, ...action }, { signal }) => {
      const found = meant(await entries().all(), action)
      if (!found || typeof found === 'string') return refuse('not-found', found ?? nobody(action.capability))
      if (!found.handler?.actions) return refuse('conflict', `connections of kind ${found.kind} carry no actions out`)
      const entry = await open(found)
      const { error, ...end } = await found.handler.actions.carryOut(entry, action, { idempotencyKey, signal })
      return { ...end, ...(error !== undefined && { error: masked(error, entry.secrets) }) }
    },
  }
}

const nobody = (id: string): string => `there is no connection ${JSON.stringify(id.slice(0, 60))}`

/** The connection that an action names, or that its key begins with; a text: why that is none. */
const meant = (
  all: readonly RecordedEntry[],
  { capability, key }: Pick<ConnectionAction, 'capability' | 'key'>,
): RecordedEntry | string | undefined => {
  if (capability !== undefined) return all.find(({ id }) => id === capability) ?? nobody(capability)
  const provider = key.slice(0, key.indexOf('.'))
  const found = all.filter(({ id }) => actionProvider(id) === provider)
  return found.length > 1
    ? `${found.map(({ id }) => id).join(' and ')} are both called ${provider}: name one as the capability`
    : found[0]
}
