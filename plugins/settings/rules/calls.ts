import type { Handlers, Host } from '../../../sdk/index.js'
import { TerminalCommands } from './commands.js'
import type { FiringOutcome, OccasionFacts, Rule, RuleCalls, RuleMoment, RulesTried, StandingRule } from './contract.js'
import { Firings } from './firings.js'
import { checkRules, checkTrial, stands } from './rule-checks.js'
import { RuleRuns } from './runs.js'

type RuleHost = Pick<Host, 'call' | 'serves' | 'emit' | 'on' | 'log' | 'store'>

/** Loaded when rules are first compared, because most daemons have none. */
const comparing = () => import('./matching.js')

/** Serves rules: which act, what they did, and running them. */
export const ruleCalls = (host: RuleHost, current: () => Promise<readonly Rule[]>): Handlers<RuleCalls> => {
  const firings = new Firings(host.store)
  const ids = async () => new Set((await current()).map(({ id }) => id))
  const stamp = async (id: string, outcome: FiringOutcome) => {
    await firings.stamp(id, outcome, await ids())
    await host
      .call('kernel.events.publish', { domain: 'settings' })
      .catch(error => host.log.warn('publishing what a rule did failed', { error: String(error) }))
  }
  const matching = async (moment: RuleMoment, facts: OccasionFacts): Promise<RulesTried> =>
    (await comparing()).tryRules(await current(), moment, facts)
  const push = new TerminalCommands(host)
  host.on(
    'daemon.ready',
    () =>
      void push.endLeft().catch(error => host.log.warn('ending a command left over failed', { error: String(error) })),
  )
  const runs = new RuleRuns({
    host,
    matching,
    stamp,
    push,
  })
  return {
    'GET /settings/rule-firings': async () => firings.list(await ids()),
    'POST /settings/rules/test': async ({ moment, facts, rules }) => {
      checkRules(rules, 'rules')
      const tried = rules ?? (await current())
      checkTrial(tried, facts)
      return (await comparing()).tryRules(tried, moment, facts)
    },
    'rules.standing': async ({ moment }) => ({
      rules: (await current()).filter(rule => rule.moment === moment && stands(rule)).map(standingOf),
    }),
    'rules.matching': ({ moment, facts }) => matching(moment, facts),
    'rules.stamp': async ({ id, outcome }) => {
      await stamp(id, outcome)
      return { ok: true }
    },
    'rules.fire': (occasion, { signal }) => runs.fire(occasion, signal),
    'rules.cancel': ({ moment }) => ({ ended: runs.cancel(moment) }),
  }
}

const standingOf = ({ id, label, action, when = {} }: Rule): StandingRule => ({
  id,
  label,
  asks: (['repo', 'paths', 'outcome'] as const).filter(
    key => when[key] !== undefined || (key === 'paths' && action.kind === 'builtin'),
  ),
})
