import { useSignal } from '@preact/signals'
import type { BudgetScope, BudgetState, UsageBudget } from '../../../../usage/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { momentOf, usdTextOf, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const STATES = { under: ['good', 'Under'], near: ['warn', 'Near'], over: ['bad', 'Over'], off: ['', 'Off'] } as const
const PERIODS = [
  ['day', 'a day'],
  ['week', 'a week'],
  ['month', 'a month'],
  ['total', 'in all'],
] as const
const ACTIONS = [
  ['warn', 'turns run with a notice'],
  ['hold', 'turns wait for a person'],
  ['refuse', 'turns do not start'],
] as const
const SCOPES = [
  ['all', 'Everything'],
  ['unattended', 'Turns that nobody watches'],
  ['run', 'Each run by itself'],
  ['provider', 'One provider'],
  ['conversation', 'One conversation'],
] as const
type ScopeKind = (typeof SCOPES)[number][0]

const scopeText = (scope: BudgetScope): string => {
  switch (scope.kind) {
    case 'provider':
      return `provider ${scope.provider}`
    case 'account':
      return `account ${scope.account} of ${scope.provider}`
    case 'persona':
      return `persona ${scope.persona}`
    case 'conversation':
      return `conversation ${scope.conversationId}`
    default:
      return SCOPES.find(([kind]) => kind === scope.kind)?.[1].toLowerCase() ?? ''
  }
}

/** A stored budget, without the spending of its period. */
const storedBudget = ({
  spentUsd: _,
  runningUsd: __,
  state: ___,
  periodStart: ____,
  renewsAt: _____,
  ...budget
}: BudgetState): UsageBudget => budget

/** Changes the list as it is on the daemon now, not as it was shown. */
const changeBudgets = async (change: (budgets: UsageBudget[]) => UsageBudget[]): Promise<void> => {
  const { budgets } = await askDaemon('GET /usage/budget')
  await askDaemon('POST /usage/budget', { budgets: change(budgets.map(storedBudget)) })
  refetch(new Set(['usage']))
}

const BudgetForm = ({ close, budget }: { close: () => void; budget?: BudgetState }) => {
  const id = useSignal(budget?.id ?? '')
  const label = useSignal(budget?.label ?? '')
  const limit = useSignal(budget ? String(budget.limitUsd) : '')
  const period = useSignal<UsageBudget['period']>(budget?.period ?? 'month')
  const at = useSignal<UsageBudget['at']>(budget?.at ?? 'hold')
  const enabled = useSignal(budget?.enabled ?? true)
  const kind = useSignal<ScopeKind>('all')
  const named = useSignal('')
  const scope = (): BudgetScope => {
    if (budget) return budget.scope
    if (kind.value === 'provider') return { kind: 'provider', provider: named.value }
    if (kind.value === 'conversation') return { kind: 'conversation', conversationId: named.value }
    return { kind: kind.value }
  }
  const needsName = !budget && (kind.value === 'provider' || kind.value === 'conversation')
  return (
    <DialogForm
      title={budget ? `Change the budget ${visibleName(budget.label ?? budget.id)}` : 'Add a budget'}
      close={close}
      verb={budget ? 'Change' : 'Add'}
      work={() =>
        changeBudgets(all => {
          const made: UsageBudget = {
            id: id.value,
            scope: scope(),
            period: !budget && kind.value === 'run' ? 'total' : period.value,
            limitUsd: Number(limit.value),
            at: at.value,
            enabled: enabled.value,
            ...(label.value && { label: label.value }),
            ...(budget?.warnAt !== undefined && { warnAt: budget.warnAt }),
          }
          return budget ? all.map(one => (one.id === budget.id ? made : one)) : [...all, made]
        })
      }
    >
      {!budget && (
        <>
          <TextField
            label="Id"
            required
            value={id}
            pattern="[a-z0-9][a-z0-9\-]*"
            hint="Small letters, digits, hyphens."
          />
          <ChoiceField label="What counts" value={kind} choices={SCOPES} />
        </>
      )}
      {needsName && (
        <TextField label={kind.value === 'provider' ? 'Provider' : 'Conversation'} required value={named} />
      )}
      <TextField label="Name" value={label} />
      <TextField label="Limit in US dollars" type="number" required min="0.01" step="0.01" value={limit} />
      {(budget ? budget.scope.kind : kind.value) !== 'run' && (
        <ChoiceField label="Period" value={period} choices={PERIODS} />
      )}
      <ChoiceField label="At the limit" value={at} choices={ACTIONS} />
      <CheckField label="In force" value={enabled} />
    </DialogForm>
  )
}

const BudgetRow = ({ budget }: { budget: BudgetState }) => {
  const { id, label, scope, period, limitUsd, at, spentUsd, runningUsd, state, renewsAt } = budget
  const shown = visibleName(label ?? id)
  return (
    <Item
      title={shown}
      state={STATES[state] ?? ['', state]}
      detail={
        <>
          <meter
            aria-label={`Spent of ${shown}`}
            min={0}
            max={limitUsd}
            high={limitUsd * 0.8}
            optimum={0}
            value={Math.min(limitUsd, spentUsd + runningUsd)}
          />
          <div>
            {usdTextOf(spentUsd)}
            {runningUsd > 0 && ` + ${usdTextOf(runningUsd)} running`} of {usdTextOf(limitUsd)}{' '}
            {PERIODS.find(([one]) => one === period)?.[1]} · {visibleName(scopeText(scope))} · at the limit{' '}
            {ACTIONS.find(([one]) => one === at)?.[1]}
            {renewsAt !== undefined && ` · renews ${momentOf(renewsAt)}`}
          </div>
        </>
      }
    >
      <FormButton
        label="Change"
        about={`the budget ${shown}`}
        form={close => <BudgetForm close={close} budget={budget} />}
      />
      <AskButton
        label="Remove"
        about={`the budget ${shown}`}
        title={`Remove the budget ${shown}?`}
        work={() => changeBudgets(all => all.filter(one => one.id !== id))}
      >
        <p>Nothing limits this spending any more, from the next turn on.</p>
      </AskButton>
    </Item>
  )
}

/** Limits on what turns may cost. */
export const BudgetSection = () => {
  const list = useQuery('budgets', ['usage'], () => askDaemon('GET /usage/budget'))
  return (
    <section aria-labelledby="budgets-heading">
      <div class="section-head">
        <h2 id="budgets-heading">Budgets</h2>
        <FormButton label="Add a budget" form={close => <BudgetForm close={close} />} />
      </div>
      <Loaded query={list}>
        {({ budgets }) =>
          budgets.length === 0 ? (
            <p class="quiet">There are none: nothing limits what turns cost.</p>
          ) : (
            <ul class="items">
              {budgets.map(budget => (
                <BudgetRow key={budget.id} budget={budget} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}
