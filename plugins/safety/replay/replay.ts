import type { SettingVerdict } from '../../settings/contract.js'
import type { JudgeAnswer, ReplayChange, ReplayCount, SafetyPolicy, SafetyReplay, SafetySubject } from '../contract.js'
import { decideByRules, isStricter, type DecidingSettings } from '../decide.js'
import { compiledPolicy, policyDigest } from '../policy/compiled-policy.js'

/** A subject that was decided before. */
export interface RecordedSubject {
  readonly at: number
  readonly id?: string
  readonly subject: SafetySubject
  readonly conversationId?: string
  readonly persona?: string
  readonly unattended: boolean
  readonly outside?: string
  readonly was: SettingVerdict
  readonly cut?: boolean
  /** What a model said, and a digest of what it was asked by. */
  readonly judge?: JudgeAnswer
  readonly judgedBy?: string
}

/** What a replay works on. */
export interface ReplayAsked {
  /** Newest first. */
  readonly subjects: readonly RecordedSubject[]
  readonly policy: SafetyPolicy
  readonly settings: DecidingSettings
  /** There are more than these. */
  readonly more: boolean
  readonly longestMs: number
}

const MOST_LISTED = 1_000

/** A digest of what a judge is asked by: while it is the same, so is its answer. */
export const judgingDigest = ({ prose, judge: { ask, actions, models } }: SafetyPolicy): string =>
  policyDigest([prose, ask, actions, models])

/** Decides subjects again. */
export const replay = ({ subjects, policy, settings, more, longestMs }: ReplayAsked): SafetyReplay => {
  const compiled = compiledPolicy(policy)
  if ('expected' in compiled) throw new Error(`${compiled.path}: ${compiled.found}`)
  const until = performance.now() + longestMs
  const digest = judgingDigest(policy)
  const counts = new Map<string, ReplayCount>()
  const changes: ReplayChange[] = []
  let replayed = 0
  let unjudged = 0
  let from: number | undefined
  for (const { was, cut, judge, judgedBy, ...recorded } of subjects) {
    if (replayed % 100 === 0 && performance.now() > until) break
    const { decision, judged } = decideByRules(recorded.subject, recorded, compiled, settings)
    const asks = judged && policy.judge.mode === 'on'
    const kept = asks && judge && judgedBy === digest ? judge : undefined
    const open = asks && !kept
    const stricter = kept && isStricter(kept.verdict, decision.verdict)
    const now = stricter ? kept.verdict : decision.verdict
    replayed++
    from = recorded.at
    if (open) unjudged++
    const pair = `${was} ${now}`
    const known = counts.get(pair)
    if (known) known.count++
    else counts.set(pair, { was, now, count: 1 })
    if (was === now || changes.length >= MOST_LISTED) continue
    changes.push({
      ...recorded,
      was,
      now,
      by: stricter ? 'judge' : decision.by,
      reason: stricter ? kept.reason.slice(0, 1_000) || 'the judge said so' : decision.reason,
      ...(!stricter && decision.ruleId !== undefined && { ruleId: decision.ruleId }),
      ...(open && { unjudged: true }),
      ...(cut && { cut: true }),
    })
  }
  return {
    replayed,
    truncated: more || replayed < subjects.length,
    counts: [...counts.values()],
    unjudged,
    changes,
    ...(from !== undefined && { from }),
  }
}
