import { Refusal, type Host } from '../../../sdk/index.js'
import { connectionActionKey } from '../actions/action-key.js'
import type { ActionEnd } from '../actions/contract.js'
import type { KindActions, OpenEntry } from '../records/kinds.js'
import { masked } from '../records/masking.js'
import { withConnection, type ServerConnectionDeps } from './connection.js'
import { toolAnswerOf } from './tool-call.js'
import { agentNameOf, mcpTools, type ServerTool } from './tool-list.js'

const MOST_MS = 30 * 60_000
const MOST_RESULT = 4000

/** What the actions of servers are made of. */
export interface ServerActionDeps {
  readonly host: Pick<Host, 'place' | 'call' | 'serves' | 'signal'>
  readonly tokens: ServerConnectionDeps['tokens']
  /** A server as it was met last. */
  readonly known: (id: string) => WithTools | undefined
  /** A server as it is now. */
  readonly meet: (entry: OpenEntry) => Promise<WithTools>
}

interface WithTools {
  readonly tools: readonly ServerTool[]
}

/** The offered tools of a server as actions: the key is `<connection>.<tool>`. */
export const serverActions = ({ host, tokens, known, meet }: ServerActionDeps): KindActions => {
  const toolFor = (
    { id, config }: OpenEntry,
    key: string,
    { tools }: WithTools,
  ): { name: string } | { problem: string } => {
    const named = mcpTools(id, config, tools, new Set()).filter(({ name }) => connectionActionKey(id, name) === key)
    const [found, other] = named
    if (!found) return { problem: `${id} has no tool ${key.slice(key.indexOf('.') + 1)}` }
    if (other) return { problem: `${id} has two tools of that key: ${found.name} and ${other.name}` }
    return found.offered ? { name: found.name } : { problem: `${found.name} of ${id} is withheld: ${found.withheld}` }
  }
  const called = async (
    entry: OpenEntry,
    name: string,
    { args, idempotencyKey, signal }: { args: object; idempotencyKey: string; signal: AbortSignal },
  ): Promise<ActionEnd> => {
    // Nobody is there who could answer.
    const elicit = async () => ({ action: 'decline' as const })
    return withConnection({ host, entry, tokens, signal, elicit, acts: true }, async connection => {
      const asked = { name, arguments: { ...args }, _meta: { idempotencyKey } }
      try {
        const answer = toolAnswerOf(await connection.client.callTool(asked, { signal, timeout: MOST_MS }))
        const text = masked(answer.text, entry.secrets).slice(0, MOST_RESULT).toWellFormed()
        if (answer.ok) return { outcome: 'done', result: text }
        return { outcome: 'failed', error: text.slice(0, 500).toWellFormed() || 'it failed without a reason' }
      } catch (error) {
        if (connection.answered(error)) return { outcome: 'failed', error: (error as Error).message.slice(0, 500) }
        const { message } = await connection.failure(error)
        return { outcome: connection.forgotten(error) ? 'failed' : 'unknown', error: message.slice(0, 500) }
      }
    })
  }
  return {
    check: async (entry, { key }, asks) => {
      try {
        const met = known(entry.id) ?? (asks ? await meet(entry) : undefined)
        if (!met) return {}
        const found = toolFor(entry, key, met)
        return 'problem' in found ? found : { tool: agentNameOf(entry.id, found.name) }
      } catch (error) {
        return { problem: Refusal.from(error).message }
      }
    },
    carryOut: async (entry, { key, args }, { idempotencyKey, signal }) => {
      const found = toolFor(entry, key, known(entry.id) ?? (await meet(entry)))
      if ('problem' in found) return { outcome: 'failed', error: found.problem }
      return called(entry, found.name, { args, idempotencyKey, signal })
    },
  }
}
