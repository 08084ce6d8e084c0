import type { AgentCard } from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'

/** Throws with what could not be done, and why. */
export const throwFailures = (list: readonly { readonly id: string; readonly message: string }[] | undefined): void => {
  if (list?.length) throw new Error(list.map(({ id, message }) => `${id}: ${message}`).join('; '))
}

/** Archives conversations, and lists those that could not be archived. */
export const archiveAll = async (ids: string[]): Promise<void> =>
  throwFailures((await askDaemon('POST /agents/archive', { ids })).failed)

/** Why a conversation is not finished, in a sentence; undefined: nothing of it is left to do. */
export const unfinishedWords = ({ status, diff, attention }: AgentCard): string | undefined => {
  if (status === 'conflict' || attention.conflict) return 'its work conflicts with the workspace'
  if (status !== 'landed' && (diff?.files ?? 0) > 0) return 'its work has not landed'
  return status === 'awaiting' ? 'it waits for an answer' : undefined
}
