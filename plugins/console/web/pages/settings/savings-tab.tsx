import type { SavingsExperiment, SavingsMetric, SavingsReport } from '../../../../settings/contract.js'
import { askDaemon } from '../../data/api.js'
import { FigureTable } from '../../ui/lists/figure-table.js'
import { countText, usdTextOf, visibleText } from '../../ui/format.js'
import { Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const MEASURES: { readonly [metric in SavingsMetric['metric']]: string } = {
  proseChars: 'Characters said in a turn',
  searchCalls: 'Searches in a conversation',
  openingSearches: 'Searches before the first change',
}

const round = (value: number): string => countText(Math.round(value * 10) / 10)

/** What can be told about a difference, in a sentence. */
const verdictOf = (
  { on, off, controlTurnsNeeded = 0, deltaPct, marginPct = 0 }: SavingsMetric,
  { minTurns, sampleUnit }: SavingsExperiment,
): string => {
  const missing = `${countText(controlTurnsNeeded)} more ${sampleUnit} without it`
  if (deltaPct === undefined) {
    if (off.turns < minTurns) return `Too few to compare: ${missing} are needed, at least ${minTurns} on each side.`
    return on.turns < minTurns
      ? `Too few to compare: ${sampleUnit} with it are missing, at least ${minTurns} on each side.`
      : 'Nothing was measured on the side without it.'
  }
  const size = `${Math.abs(deltaPct)} % ${deltaPct < 0 ? 'fewer' : 'more'}, give or take ${marginPct} %`
  if (Math.abs(deltaPct) > marginPct) return `${size}.`
  return controlTurnsNeeded > 0
    ? `No difference that can be told yet (${size}): ${missing} are needed to tell a tenth.`
    : `No difference of a tenth or more (${size}).`
}

interface ExperimentProps {
  readonly title: string
  readonly off: string
  readonly experiment: SavingsExperiment
}

const Experiment = ({ title, off, experiment }: ExperimentProps) => (
  <section aria-label={title}>
    <h2>{title}</h2>
    {experiment.metrics.length === 0 ? (
      <p class="quiet">{off}</p>
    ) : (
      <ul class="items">
        {experiment.metrics.map(metric => (
          <li key={metric.metric} class="item">
            <div class="item-main">
              <div class="item-title">{MEASURES[metric.metric]}</div>
              <div class="quiet small">
                With it {round(metric.on.mean)} in {countText(metric.on.turns)} {experiment.sampleUnit}, without it{' '}
                {round(metric.off.mean)} in {countText(metric.off.turns)}.
              </div>
              <div>{verdictOf(metric, experiment)}</div>
              {metric.saved !== undefined && (
                <div class="quiet small">
                  {metric.saved < 0 ? 'It cost' : 'It saved'} about {countText(Math.abs(metric.saved))} in all.
                </div>
              )}
            </div>
          </li>
        ))}
      </ul>
    )}
  </section>
)

const Outputs = ({
  commands,
  rawTokens,
  emittedTokens,
  savedPct,
  perCleaner,
  holdout,
  gaps,
}: SavingsReport['input']) => (
  <section aria-label="Output of commands">
    <h2>Output of commands</h2>
    {commands + holdout.heldOut === 0 ? (
      <p class="quiet">No output was shortened yet. “Shorten the output of commands” in the settings starts it.</p>
    ) : (
      <>
        <p>
          Models read {countText(emittedTokens)} of {countText(rawTokens)} tokens in {countText(commands)}{' '}
          {commands === 1 ? 'command' : 'commands'}: {savedPct} % less. Tokens are estimated.
        </p>
        {holdout.heldOut > 0 && (
          <p class="quiet">
            {countText(holdout.heldOut)} commands were left as they are.{' '}
            {holdout.measuredSavedPct === undefined
              ? 'Beside these no difference can be told yet.'
              : `Beside these an output has ${holdout.measuredSavedPct} % fewer tokens.`}
          </p>
        )}
        {perCleaner.length > 0 && (
          <FigureTable head={['Cleaner', 'Commands', 'Tokens saved']}>
            {perCleaner.map(row => (
              <tr key={row.id}>
                <th scope="row">{row.id}</th>
                <td class="number">{countText(row.commands)}</td>
                <td class="number">{countText(row.savedTokens)}</td>
              </tr>
            ))}
          </FigureTable>
        )}
        {gaps.length > 0 && (
          <p class="quiet">
            Long outputs of which hardly anything was left out:{' '}
            {gaps.map(gap => `${visibleText(gap.command)} (${countText(gap.tokens)} tokens)`).join(', ')}.
          </p>
        )}
      </>
    )}
  </section>
)

const Tier = ({ judged, fast, atStakeUsd, routed, routedUsd, escalated }: SavingsReport['tier']) =>
  judged === 0 ? undefined : (
    <section aria-label="Models for easy turns">
      <h2>Models for easy turns</h2>
      <p>
        {countText(judged)} turns were judged, {countText(fast)} of them easy; these cost {usdTextOf(atStakeUsd)}.{' '}
        {countText(routed)} ran on a cheaper model for {usdTextOf(routedUsd)}; {countText(escalated)} went back.
      </p>
    </section>
  )

/** What the settings save, and what cannot be told yet. */
export const SavingsTab = () => {
  const savings = useQuery('settings-savings', ['settings', 'usage'], () => askDaemon('GET /settings/savings'))
  return (
    <Loaded query={savings}>
      {({ input, output, search, tier }) => (
        <div class="sections">
          <Outputs {...input} />
          <Experiment
            title="Short answers"
            off="Nothing is compared. “Ask for short answers” with a share that is not asked starts it."
            experiment={output}
          />
          <Experiment
            title="Search"
            off="Nothing is compared. “Teach the search tool” with a share that is not taught starts it."
            experiment={search}
          />
          <Tier {...tier} />
        </div>
      )}
    </Loaded>
  )
}
