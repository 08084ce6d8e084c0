import { hash } from 'node:crypto'
import type { TurnPersona } from '../../../personas/contract.js'
import type { PayTools, ToolParts } from '../../tools/tool.js'
import type { Turn } from '../turn.js'
import { approvalTools } from './approvals.js'
import type { TurnEnvironmentDeps } from './environment-deps.js'
import { needTools } from './needs.js'

type PayingTurn = Pick<
  Turn,
  'conversationId' | 'run' | 'log' | 'record' | 'entry' | 'heardOthers' | 'markOutside' | 'forgetAnswer'
>

type AskedDeps = Pick<TurnEnvironmentDeps, 'host' | 'conversations'>

/** What people give and allow on request of a turn. */
export const askedTools = (
  deps: AskedDeps,
  turn: PayingTurn,
  persona: Pick<TurnPersona, 'capabilities'> | undefined,
): Pick<ToolParts, 'needs' | 'approvals' | 'paying'> => ({
  needs: needTools(deps.host, turn),
  approvals: approvalTools(deps.host, turn),
  paying: payTools(deps, turn, persona),
})

/** Pays on behalf of a turn, from the wallets that its persona allows. */
const payTools = (
  { host, conversations }: AskedDeps,
  turn: PayingTurn,
  persona: Pick<TurnPersona, 'capabilities'> | undefined,
): PayTools => {
  const { conversationId, run } = turn
  const allowed = persona && { capabilities: [...persona.capabilities] }
  const keyOf = (call: string): string => hash('sha256', JSON.stringify([run, call]))
  /** A call that is repeated after a restart may have shown it. */
  const show: PayTools['show'] = async (call, { outcome, amountUsd, network, transaction, card }) => {
    const requestId = card ?? call
    if (outcome !== 'open' && !turn.record.receipts.has(requestId))
      turn.log.push({
        ...{ kind: 'payment_receipt', requestId, outcome, amountUsd, network },
        ...(transaction !== undefined && { transaction }),
      })
    if (card !== undefined) await turn.forgetAnswer(card)
  }
  return {
    served: async () =>
      (await host.serves('wallets.usable')) && (await host.call('wallets.usable', { ...allowed })).wallets.length > 0,
    get cautious() {
      // What a program reads by itself is not seen here.
      const reads = turn.entry.fields.harness === 'vendor-code'
      // What an earlier turn took in is in the record and the session.
      return reads || turn.heardOthers || conversations.find(conversationId)?.heardOthers === true
    },
    earlier: async (call, request) =>
      (await host.serves('wallets.earlier'))
        ? (await host.call('wallets.earlier', { key: keyOf(call), conversationId, ...(request && { request }) }))
            .payment
        : undefined,
    quote: asked => host.call('wallets.quote', { ...asked, ...allowed }),
    sign: async (call, { terms }, card) =>
      (
        await host.call('wallets.sign', {
          ...{ key: keyOf(call), terms, conversationId, run },
          ...(card !== undefined && { card }),
        })
      ).header,
    settle: async (call, key, said) => {
      const outcome = await host.call('wallets.settle', { key: key ?? keyOf(call), ...said })
      await show(call, outcome)
      return outcome
    },
    show,
    read: async of => turn.markOutside(`Pay ${of}`.slice(0, 200)),
  }
}
