import { refuse, type Contract, type Host } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import { classEntries } from './classify/class-entries.js'
import { commandClasses } from './classify/classify.js'
import { safetyContract, type SafetyCalls, type SafetyPolicy, type SafetyVerdict } from './contract.js'
import { decideByRules } from './decide.js'
import { Deciding } from './deciding.js'
import { examples } from './examples.js'
import { PolicyJudge } from './judge.js'
import { BriefAllows } from './log/brief-allows.js'
import { listedVerdicts } from './log/listed-verdicts.js'
import { StoredMasker } from './log/stored-masker.js'
import { VerdictLog } from './log/verdict-log.js'
import { compiledPolicy, type CompiledPolicy } from './policy/compiled-policy.js'
import { POLICY_FILE, PolicyFile } from './policy/policy-file.js'
import { MinuteLimit } from './minute-limit.js'
import { recordedSubjects } from './replay/recorded-subjects.js'
import { runReplay } from './replay/run-replay.js'

export const contract: Contract<SafetyCalls> = { ...safetyContract, examples }

const MOST_JUDGED_TESTS = 30
const MOST_REPLAYS = 10
const MOST_RULES = 200
const MOST_REPLAYED = 40_000
const USUAL_REPLAYED = 20_000
const LONGEST_REPLAY_MS = 30_000

/** Decides what agents may do, and keeps the policy and the log of verdicts. */
export const activate = async (host: Host): Promise<void> => {
  const policy = new PolicyFile(host.place.workspace, host.store)
  const log = new VerdictLog(host.journal)
  const allows = new BriefAllows(host.journal, error =>
    host.log.error('keeping what was allowed failed', { error: String(error) }),
  )
  const judge = new PolicyJudge(host)
  const publish = (key?: string) =>
    void host
      .call('kernel.events.publish', { domain: 'safety', ...(key !== undefined && { key }) })
      .catch(
        error => host.signal.aborted || host.log.warn('publishing a safety change failed', { error: String(error) }),
      )
  const masker = new StoredMasker(host)
  const deciding = new Deciding({ host, policy, judge, log, allows, masker, changed: publish })
  const [tests, replays] = [new MinuteLimit(MOST_JUDGED_TESTS), new MinuteLimit(MOST_REPLAYS)]
  let replaying = false

  await Promise.all([log.load(), allows.load()])
  // The turns that waited for these ended with the last daemon; one that goes on asks again.
  host.boot('Held commands of the last run', async () => {
    for (const { id } of log.pending) await log.settle(id, 'refused')
  })
  host.stopping(() => allows.flush())
  host.contribute('system.manifestProblems', async () => [{ path: POLICY_FILE, problems: await policy.problems() }])

  await host.serve(safetyContract, {
    'GET /safety': async () => {
      const [{ policy: current, revision }, { commandRules }] = await Promise.all([
        policy.current(),
        host.call('settings.get'),
      ])
      const reviews = log.entries.flatMap(({ review }) => review ?? [])
      const right = reviews.filter(({ correct }) => correct).length
      return {
        policy: structuredClone(current),
        revision,
        classes: classEntries(commandRules),
        judge: await judge.state(current),
        reviewed: { right, wrong: reviews.length - right },
      }
    },
    'POST /safety': async ({ policy: given, revision }, context) => {
      checked(given)
      const { revision: now } = await policy.change(before => {
        if (revision !== undefined && revision !== before.revision)
          refuse('conflict', 'the policy has changed since that revision, so nothing was written: read it again')
        return given
      })
      publish()
      await record(
        host,
        { type: 'safety.changed', extra: { rules: given.rules.length, judge: given.judge.mode } },
        context,
      )
      return { ok: true as const, revision: now }
    },
    'POST /safety/test': async ({ subject, context = {}, policy: given, judge: asks }) => {
      const [current, settings] = await Promise.all([
        given ? checked(given) : policy.current(),
        host.call('settings.get'),
      ])
      const { unattended = false, outside, persona, repo } = context
      const around = {
        unattended,
        ...(outside && { outside: 'content from outside' }),
        ...(persona !== undefined && { persona }),
        ...(repo !== undefined && { repo }),
      }
      const ruled = decideByRules(subject, around, current, settings)
      const { steps } = ruled
      if (!asks || !ruled.judged) {
        const detail = ruled.judged ? 'the judge would be asked' : 'the judge is not asked'
        return { decision: ruled.decision, steps: [...steps, { step: steps.length + 1, matched: false, detail }] }
      }
      const { available, reason } = await judge.state(current.policy)
      if (!available) refuse('dependency', `no model can be asked: ${reason ?? 'none is connected'}`)
      tests.take('expected at most 30 judged tests a minute: try again later')
      const decision = await deciding.judged(ruled, subject, around, current.policy)
      const detail = decision.judge ? `the judge says ${decision.judge.verdict}` : 'no model answered in time'
      return { decision, steps: [...steps, { step: steps.length + 1, matched: decision.by === 'judge', detail }] }
    },
    'POST /safety/replay': async ({ policy: given, since = 0, limit = USUAL_REPLAYED }) => {
      checked(given)
      if (replaying) refuse('conflict', 'another replay is running: try again when it is done')
      replays.take('expected at most 10 replays a minute: try again later')
      replaying = true
      try {
        const { commandRules, actionRules } = await host.call('settings.get')
        const all = recordedSubjects(log.entries, await allows.all(), since)
        const most = Math.min(limit, MOST_REPLAYED)
        return await runReplay(
          {
            subjects: all.slice(0, most),
            more: all.length > most,
            policy: given,
            settings: { commandRules, actionRules },
            longestMs: LONGEST_REPLAY_MS,
          },
          host.signal,
        )
      } finally {
        replaying = false
      }
    },
    'GET /safety/verdicts': asked => listedVerdicts(log.entries, asked),
    'POST /safety/verdicts/{id}/review': async ({ id, correct, note, rule }, context) => {
      const found: SafetyVerdict | undefined = log.find(id)
      if (!found) refuse('not-found', `there is no verdict ${JSON.stringify(id)}: GET /safety/verdicts lists them`)
      if (rule) {
        await policy.change(({ policy: before }) => {
          if (before.rules.some(other => other.id === rule.id))
            refuse('conflict', `a rule ${rule.id} exists already: give this one an id of its own`)
          if (before.rules.length >= MOST_RULES)
            refuse('conflict', `there are ${MOST_RULES} rules already: remove one first`)
          const next = { ...before, rules: [rule, ...before.rules] }
          checked(next, path => path.replace('policy.rules[0]', 'rule'))
          return next
        })
      }
      await log.review(id, {
        correct,
        by: context.caller.actor,
        at: Date.now(),
        ...(note !== undefined && { note: await masker.mask(note) }),
      })
      publish(id)
      if (rule) await record(host, { type: 'safety.changed', extra: { rule: rule.id } }, context)
      return { ok: true as const, ...(rule && { ruleId: rule.id }) }
    },
    'safety.decide': ({ subject, context }) => deciding.decide(subject, context),
    'safety.settle': async ({ id, outcome, answeredBy }) => {
      await log.settle(id, outcome, answeredBy)
      publish(id)
      return { ok: true as const }
    },
    'safety.classify': ({ text }) => ({ classes: commandClasses(text) }),
    'safety.admit': async ({ source }) => ({ verdict: (await host.call('settings.get')).admission[source] }),
  })
}

/** A compiled policy; refuses one that does not compile. */
const checked = (policy: SafetyPolicy, shown = (path: string): string => path): CompiledPolicy => {
  const compiled = compiledPolicy(policy)
  if (!('expected' in compiled)) return compiled
  const { expected, found } = compiled
  const path = shown(compiled.path)
  return refuse('invalid', `${path}: expected ${expected}, found ${found.slice(0, 200)}`, {
    errors: [{ path, expected, value: found }],
  })
}
