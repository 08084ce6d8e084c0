import type { Host } from '../../../sdk/index.js'
import { measuredIn } from '../briefing/measured.js'
import type { UsageTurn } from '../../usage/contract.js'
import type { Conversation } from '../contract.js'
import type { JudgedTier } from '../turn/run-entry.js'
import type { RunEnd } from '../turn/frames/frames.js'
import type { Turn } from '../turn/turn.js'

const OUTCOMES = { completed: 'ok', failed: 'error', stopped: 'stopped', interrupted: 'stopped' } as const satisfies {
  [end in RunEnd]: string
}

/**
 * Records what a run spent, if the sandbox has a ledger; can be repeated. A failure is logged: no turn fails because
 * its cost could not be written.
 */
export const billed = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  turn: Turn,
  end: RunEnd,
  { actsAs }: Pick<Conversation, 'actsAs'> = {},
): Promise<void> => {
  const { run, conversationId, message, record, entry } = turn
  try {
    if (!(await host.serves('usage.record'))) return
    const { parts, ofSubagents } = record.spending
    const { arms = {}, tier } = entry.fields
    const once = { ...measuredIn(record, arms, turn.index === 0), ...tierOf(tier) }
    const lines = [
      // Counted once a turn, however many parts it has.
      ...parts.map((spent, part) => ({ ...spent, run, part, ...(part === 0 && once) })),
      ...ofSubagents.map(({ subagent, ...spent }) => ({ ...spent, run: `${run}:${subagent}`, part: 0 })),
    ]
    for (const spent of lines)
      await host.call('usage.record', {
        ...spent,
        at: Date.now(),
        conversationId,
        turns: Math.max(1, spent.turns),
        durationMs: spent.durationMs || Math.max(0, Date.now() - entry.fields.startedAt),
        unattended: !message.attended,
        outcome: OUTCOMES[end],
        ...(actsAs !== undefined && { persona: actsAs }),
      })
  } catch (error) {
    host.log.error('recording what a run spent failed', { run, error: String(error) })
  }
}

/** What the ledger stores of a verdict, with the first part of its run. */
const tierOf = (
  judged: JudgedTier | undefined,
): Pick<UsageTurn, 'tierScore' | 'tierRules' | 'tierFast' | 'tierRouted' | 'tierEscalated' | 'tierDenied'> => {
  if (!judged) return {}
  const { tier, score, rules, routed, escalated, denied } = judged
  return {
    tierScore: score,
    tierRules: [...rules],
    tierFast: tier === 'fast',
    tierRouted: routed !== undefined,
    ...(escalated !== undefined && { tierEscalated: true }),
    ...(denied !== undefined && { tierDenied: true }),
  }
}
