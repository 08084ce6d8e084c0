import type { Host } from '../../sdk/index.js'
import type { SafetySubject } from '../safety/contract.js'
import type { StoredApproval } from './stored-approval.js'

/** Why the safety policy denies what a person has approved; undefined: it does not, because a yes settles a hold. */
export const denialOf = async (
  host: Pick<Host, 'call' | 'serves'>,
  { conversationId, approvedBy }: StoredApproval,
  subjects: readonly SafetySubject[],
): Promise<string | undefined> => {
  if (!(await host.serves('safety.decide'))) return undefined
  for (const subject of subjects) {
    const context = { unattended: false, ...(conversationId !== undefined && { conversationId }) }
    const { verdict, reason, message = reason, id } = await host.call('safety.decide', { subject, context })
    if (verdict === 'deny') return `the safety policy refuses this: ${message}`
    if (verdict === 'hold' && id !== undefined)
      await host.call('safety.settle', {
        ...{ id, outcome: 'approved' },
        ...(approvedBy !== undefined && { answeredBy: approvedBy }),
      })
  }
  return undefined
}
