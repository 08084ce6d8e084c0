import { refuse, type Host } from '../../../../sdk/index.js'
import type { ApprovalTools } from '../../tools/tool.js'
import type { Engine } from '../engine.js'

/** Shows in a running turn what becomes of the proposals of its conversation. */
export const showApprovals = (host: Pick<Host, 'on'>, engine: Pick<Engine, 'live'>): void =>
  host.on('approval.changed', ({ conversationId, proposed: _proposed, ...approval }) => {
    const turn = engine.live(conversationId)
    if (turn && !turn.leaving && !turn.record.done) turn.log.push({ kind: 'approval', ...approval })
  })

/** Files proposals on behalf of a turn. */
export const approvalTools = (
  host: Pick<Host, 'call' | 'serves'>,
  { conversationId, run }: { readonly conversationId: string; readonly run: string },
): ApprovalTools => ({
  served: () => host.serves('approvals.file'),
  file: async (draft, files) => {
    if (!(await host.serves('approvals.file')))
      refuse('unavailable', 'this sandbox keeps no approvals: say in your answer what should be sent')
    return host.call('approvals.file', { ...draft, files, conversationId, run })
  },
})
