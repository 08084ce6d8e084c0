import { refuse, type Host } from '../../../sdk/index.js'
import type { OutputArm, OutputSavings } from '../../agent/contract.js'
import type { MeasuredMetric, MetricArms } from '../../usage/contract.js'
import type { Settings } from '../contract.js'
import type { InputSavings, SavingsExperiment, SavingsMetric, SavingsReport } from './contract.js'
import { tierSavings } from '../tier/report.js'
import { controlNeeded, differenceOf, meanOf, type Sample } from './difference.js'

type SavingsHost = Pick<Host, 'call' | 'serves'>
/** Days in UTC. */
export interface SavingsDays {
  readonly from?: string
  readonly to?: string
}

/** A mean of fewer says nothing: single answers differ by a factor of ten. */
const MIN_TURNS = 30
const MIN_CONVERSATIONS = 20
const MIN_COMMANDS = 30

const NO_OUTPUTS: OutputSavings = {
  ...{ commands: 0, rawTokens: 0, emittedTokens: 0, perCleaner: [], gaps: [] },
  cleaned: { commands: 0, tokens: 0, squares: 0 },
  heldOut: { commands: 0, tokens: 0, squares: 0 },
}
const NO_ARMS: MetricArms = { on: { units: 0, sum: 0, squares: 0 }, off: { units: 0, sum: 0, squares: 0 } }

/** What each saving of the settings was worth on some days. */
export const savingsOf = async (host: SavingsHost, settings: Settings, days: SavingsDays): Promise<SavingsReport> => {
  assertDays(days)
  const { terseOutput, terseHoldout, iqSearch, iqSearchHoldout } = settings
  const [outputs, cohorts] = await Promise.all([
    host.serves('agent.savings').then(served => (served ? host.call('agent.savings', { ...days }) : NO_OUTPUTS)),
    host.serves('agent.cohorts').then(served => (served ? host.call('agent.cohorts') : { terse: '', search: '' })),
  ])
  const ofCohort = (cohort: string) => async (metric: MeasuredMetric) =>
    (await host.serves('usage.arms')) ? host.call('usage.arms', { metric, cohort, ...days }) : NO_ARMS
  return {
    input: inputSavings(outputs),
    output: await experiment(
      terseOutput && terseHoldout > 0 ? ['proseChars'] : [],
      { minTurns: MIN_TURNS, sampleUnit: 'turns', cohort: cohorts.terse },
      ofCohort(cohorts.terse),
    ),
    search: await experiment(
      iqSearch && iqSearchHoldout > 0 ? ['searchCalls', 'openingSearches'] : [],
      { minTurns: MIN_CONVERSATIONS, sampleUnit: 'conversations', cohort: cohorts.search },
      ofCohort(cohorts.search),
    ),
    tier: tierSavings((await host.serves('usage.judged')) ? (await host.call('usage.judged', { ...days })).turns : []),
  }
}

const sampleOf = ({ commands: units, tokens: sum, squares }: OutputArm): Sample => ({ units, sum, squares })

const inputSavings = ({ cleaned, heldOut, ...sums }: OutputSavings): InputSavings => {
  const { commands, rawTokens, emittedTokens, perCleaner, gaps, updatedAt } = sums
  const control = sampleOf(heldOut)
  const found = differenceOf(sampleOf(cleaned), control, MIN_COMMANDS)
  const told = found && Math.abs(found.delta) > found.margin && meanOf(control) > 0
  return {
    ...(updatedAt !== undefined && { updatedAt }),
    ...{ commands, rawTokens, emittedTokens },
    savedPct: rawTokens === 0 ? 0 : percent((rawTokens - emittedTokens) / rawTokens),
    perCleaner,
    holdout: {
      cleaned: cleaned.commands,
      heldOut: heldOut.commands,
      ...(told && { measuredSavedPct: percent(-found.delta / meanOf(control)) }),
    },
    gaps,
  }
}

const experiment = async (
  names: readonly MeasuredMetric[],
  { cohort, minTurns, sampleUnit }: Omit<SavingsExperiment, 'metrics'>,
  armsOf: (metric: MeasuredMetric) => Promise<MetricArms>,
): Promise<SavingsExperiment> => ({
  metrics: await Promise.all(names.map(async metric => metricOf(metric, await armsOf(metric), minTurns))),
  ...{ minTurns, sampleUnit, cohort: names.length > 0 ? cohort : '' },
})

const metricOf = (metric: MeasuredMetric, { on, off }: MetricArms, least: number): SavingsMetric => {
  const found = differenceOf(on, off, least)
  const mean = meanOf(off)
  const told = found && mean > 0 ? { delta: found.delta / mean, margin: found.margin / mean } : undefined
  const differs = found !== undefined && Math.abs(found.delta) > found.margin
  return {
    metric,
    on: { turns: on.units, mean: meanOf(on) },
    off: { turns: off.units, mean },
    controlTurnsNeeded: controlNeeded(on, off, least),
    ...(told && { deltaPct: percent(told.delta), marginPct: percent(told.margin) }),
    ...(differs && { saved: Math.round(-found.delta * on.units) }),
  }
}

/** A percentage with one digit behind the point. */
const percent = (part: number): number => Math.round(part * 1000) / 10

const assertDays = (days: SavingsDays): void => {
  for (const path of ['from', 'to'] as const) {
    const day = days[path]
    if (day === undefined || isDay(day)) continue
    refuseDay(path, 'a day such as 2026-03-31', day)
  }
  const { from, to } = days
  if (from !== undefined && to !== undefined && from > to) refuseDay('from', 'a day not after to', `${from} to ${to}`)
}

const isDay = (day: string): boolean => {
  const at = Date.parse(`${day}T00:00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day)
}

const refuseDay = (path: string, expected: string, found: string): never =>
  refuse('invalid', `${path}: expected ${expected}, found ${JSON.stringify(found)}`, { errors: [{ path, expected }] })
