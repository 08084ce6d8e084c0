import { refuse } from '../../../sdk/index.js'
import type { Input } from '../../../sdk/contract.js'
import type { SafetyCalls, SafetyVerdict } from '../contract.js'
import { isVerdictId, type StoredVerdict } from './verdict-log.js'

const USUAL = 100
const MOST = 500

/** A page of the log, newest first. */
export const listedVerdicts = (
  entries: readonly StoredVerdict[],
  {
    limit = USUAL,
    before,
    verdict,
    conversationId,
    class: one,
    unreviewed,
  }: Input<SafetyCalls, 'GET /safety/verdicts'>,
): { verdicts: SafetyVerdict[]; next?: string } => {
  if (before !== undefined && !isVerdictId(before))
    refuse('invalid', `before: expected the next of an earlier answer, found ${JSON.stringify(before)}`, {
      errors: [{ path: 'before', expected: 'the next of an earlier answer', value: before }],
    })
  const most = Math.min(limit, MOST)
  const verdicts: SafetyVerdict[] = []
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]!
    if (before !== undefined && entry.id >= before) continue
    if (verdict !== undefined && entry.verdict !== verdict) continue
    if (conversationId !== undefined && entry.conversationId !== conversationId) continue
    if (one !== undefined && !entry.classes.includes(one)) continue
    if (unreviewed !== undefined && (entry.review === undefined) !== unreviewed) continue
    if (verdicts.length === most) return { verdicts, next: verdicts.at(-1)!.id }
    const { judgedBy: _, ...shown } = entry
    verdicts.push(structuredClone(shown))
  }
  return { verdicts }
}
