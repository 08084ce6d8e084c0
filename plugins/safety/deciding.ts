import type { Host } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import type { DecisionContext, SafetyDecision, SafetyOutcome, SafetyPolicy, SafetySubject } from './contract.js'
import { decideByRules, isStricter, type RuledDecision } from './decide.js'
import type { PolicyJudge } from './judge.js'
import type { BriefAllows } from './log/brief-allows.js'
import type { StoredMasker } from './log/stored-masker.js'
import type { StoredVerdict, VerdictLog } from './log/verdict-log.js'
import type { CompiledPolicy } from './policy/compiled-policy.js'
import type { PolicyFile } from './policy/policy-file.js'
import { judgingDigest } from './replay/replay.js'

/** What decisions stand on. */
export interface DecidingDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly policy: Pick<PolicyFile, 'current'>
  readonly judge: PolicyJudge
  readonly log: VerdictLog
  readonly allows: BriefAllows
  readonly masker: StoredMasker
  readonly changed: (id: string) => void
}

/** A decision as its asker gets it. */
export interface Decided extends SafetyDecision {
  readonly id?: string
  readonly message?: string
}

const MOST_TEXT = 2_000
const MOST_BRIEF = 500
const MOST_EXAMPLES = 20

/** Decides what is about to happen, and logs it. */
export class Deciding {
  readonly #deps: DecidingDeps

  constructor(deps: DecidingDeps) {
    this.#deps = deps
  }

  /** Decides and logs: what is held, denied, judged or excepted in the log, a plain allow in brief. */
  async decide(subject: SafetySubject, context: DecisionContext): Promise<Decided> {
    const { policy, host } = this.#deps
    const [current, settings] = await Promise.all([policy.current(), host.call('settings.get')])
    const ruled = decideByRules(subject, context, current, settings)
    const decision = ruled.judged ? await this.judged(ruled, subject, context, current.policy) : ruled.decision
    if (decision.verdict === 'allow' && decision.by === 'default' && !decision.judge) {
      await this.#brief(subject, context, decision)
      return decision
    }
    const entry = await this.#logged(subject, context, decision, current, outcomeOf(decision, subject, context))
    const message = ruled.message ?? this.#told(decision, subject)
    return { ...decision, id: entry.id, ...(decision.verdict !== 'allow' && { message }) }
  }

  /** What the judge makes of something that the rules allow: it is never less strict than they are. */
  async judged(
    { decision }: Pick<RuledDecision, 'decision'>,
    subject: SafetySubject,
    { unattended, outside }: Pick<DecisionContext, 'unattended' | 'outside'>,
    policy: SafetyPolicy,
  ): Promise<SafetyDecision> {
    const { judge, masker } = this.#deps
    const { mode, onFailure } = policy.judge
    const masked = await masker.mask(subject)
    const answer = await judge.ask(
      policy,
      { subject: masked, classes: decision.classes, unattended, outside },
      this.#reviewed(),
    )
    if (mode === 'shadow') return answer ? { ...decision, judge: answer } : decision
    if (!answer)
      return isStricter(onFailure, decision.verdict)
        ? {
            ...decision,
            verdict: onFailure,
            by: 'judge',
            reason: `no model judged it in time, and the policy then says ${onFailure}`,
          }
        : decision
    if (!isStricter(answer.verdict, decision.verdict)) return { ...decision, judge: answer }
    const quoted = answer.quote ? `: "${answer.quote}"` : ''
    const reason = `the policy is against it${quoted} (${answer.reason})`.slice(0, 1_000)
    return { ...decision, verdict: answer.verdict, by: 'judge', reason, judge: answer }
  }

  #reviewed(): StoredVerdict[] {
    const found = this.#deps.log.entries.filter(({ review }) => review !== undefined)
    return found.sort((a, b) => a.review!.at - b.review!.at).slice(-MOST_EXAMPLES)
  }

  /** The message for the agent where a call is held or denied. */
  #told({ verdict, reason }: SafetyDecision, { kind }: SafetySubject): string {
    if (kind === 'action' && verdict === 'hold') return `${reason}; write it as a draft for a person to send`
    return reason
  }

  async #brief(subject: SafetySubject, context: DecisionContext, { classes }: SafetyDecision): Promise<void> {
    const { masker, allows } = this.#deps
    allows.add({ at: Date.now(), ...(await masker.mask(logged(subject, context, MOST_BRIEF))), classes })
  }

  async #logged(
    subject: SafetySubject,
    context: DecisionContext,
    decision: SafetyDecision,
    { policy, revision }: CompiledPolicy,
    outcome: SafetyOutcome,
  ): Promise<StoredVerdict> {
    const { log, masker, host, changed } = this.#deps
    const entry = await log.add({
      ...(await masker.mask({ ...logged(subject, context, MOST_TEXT), ...decision })),
      ...(context.run !== undefined && { run: context.run }),
      outcome,
      policyRevision: revision,
      ...(decision.judge && { judgedBy: judgingDigest(policy) }),
    })
    changed(entry.id)
    if (decision.verdict !== 'allow') {
      const { conversationId } = context
      await record(host, {
        type: decision.verdict === 'hold' ? 'safety.held' : 'safety.denied',
        outcome: 'error',
        ...(conversationId !== undefined && { conversationId }),
        extra: { id: entry.id, by: decision.by, ...(decision.ruleId !== undefined && { rule: decision.ruleId }) },
      })
    }
    return entry
  }
}

/** The fields of a subject and its turn that are kept, with the text cut. */
const logged = (
  subject: SafetySubject,
  { conversationId, persona, unattended, outside }: DecisionContext,
  most: number,
): Pick<StoredVerdict, 'subject' | 'conversationId' | 'persona' | 'unattended' | 'outside'> => ({
  subject: { ...subject, text: subject.text.slice(0, most).toWellFormed() },
  unattended,
  ...(conversationId !== undefined && { conversationId }),
  ...(persona !== undefined && { persona }),
  ...(outside !== undefined && { outside }),
})

const outcomeOf = (
  { verdict }: SafetyDecision,
  { kind }: SafetySubject,
  { unattended }: DecisionContext,
): SafetyOutcome => {
  if (verdict === 'allow') return 'ran'
  if (verdict === 'deny') return 'refused'
  return unattended || kind === 'action' ? 'refused' : 'pending'
}
