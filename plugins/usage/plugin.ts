import { refuse, type Contract, type Host } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import { Budgets } from './budgets.js'
import { usageContract, type UsageBudget, type BudgetState, type UsageCalls } from './contract.js'
import { examples } from './examples.js'
import { Ledger } from './ledger.js'
import { utcDayOf, nanosOf, usdOf, type LedgerLine } from './line.js'
import { costOf, priceOf } from './price.js'
import { rollup } from './rollup.js'
import { UsageIndex } from './usage-index.js'

export const contract: Contract<UsageCalls> = { ...usageContract, examples }

const LONGEST_WAIT = 24 * 60 * 60_000
const APART = 1_000
const REFUSED = 1_000

/** Keeps what every turn cost, and the budgets that hold spending. */
export const activate = async (host: Host): Promise<void> => {
  const index = new UsageIndex(host.place.folder)
  const publish = publisher(host)
  const budgets: Budgets = new Budgets({
    index,
    files: host.files,
    store: host.store,
    now: Date.now,
    changed: publish,
    crossed: ({ id, state, spentUsd, runningUsd, limitUsd }: BudgetState) =>
      record(host, {
        type: `budget.${state}`,
        extra: { id, spentUsd: usdOf(nanosOf(spentUsd + runningUsd)), limitUsd },
      }),
  })
  const check = () =>
    budgets.check().catch(error => host.log.error('checking budgets failed', { error: String(error) }))
  const ledger = new Ledger({
    journals: host.journal,
    index,
    log: host.log,
    added: lines => {
      budgets.added(lines)
      publish([])
      void check()
    },
    recounted: () => budgets.recount(),
  })
  await ledger.current()
  await budgets.load()
  void check()
  const awaitRenewal = renewals(host, budgets, check)
  awaitRenewal()

  // A run that never got to the ledger spends no more.
  host.on('turn.settled', ({ run }) => budgets.settled(run))
  host.stopping(async () => {
    await ledger.idle()
    index.close()
  })

  const refused = new Set<string>()
  /** Whether a turn was not refused by this budget before: one that waits asks again and again. */
  const isNews = (budget: string, run: string | undefined): boolean => {
    if (run === undefined) return true
    const name = `${budget} ${run}`
    if (refused.has(name)) return false
    if (refused.size >= REFUSED) refused.delete(refused.values().next().value!)
    refused.add(name)
    return true
  }

  await host.serve(usageContract, {
    'GET /usage/rollup': async asked => {
      await ledger.current()
      return rollup(index, asked)
    },
    'GET /usage/budget': async () => {
      await ledger.current()
      return { budgets: budgets.states }
    },
    'POST /usage/budget': async ({ budgets: given }, context) => {
      await assertFit(host, given)
      await budgets.replace(given)
      publish(given.map(({ id }) => id))
      await record(host, { type: 'budget.changed', extra: { ids: given.map(({ id }) => id) } }, context)
      await check()
      awaitRenewal()
      return { budgets: budgets.states }
    },
    'usage.record': async turn => {
      const { costUsd } = turn
      const price = costUsd === undefined ? await priceOf(host, turn.provider, turn.model) : undefined
      const line: LedgerLine = {
        ...turn,
        day: utcDayOf(turn.at),
        costUsd: usdOf(nanosOf(costUsd ?? (price ? costOf(price, turn) : 0))),
        costFrom: costUsd !== undefined ? 'reported' : price ? 'priced' : 'unknown',
      }
      await ledger.record(line)
      return { ok: true }
    },
    'usage.admit': async asked => {
      const { conversationId, provider, run, runningTokens, runningUsd = 0 } = asked
      const used = runningTokens && { inputTokens: runningTokens.input, outputTokens: runningTokens.output }
      const price = used && (await priceOf(host, provider, asked.model))
      const nanos = nanosOf(runningUsd + (price && used ? costOf(price, used) : 0))
      await ledger.current()
      const admission = budgets.admit(asked, nanos)
      if (nanos > 0) void check()
      if (admission.verdict === 'refuse' && !used && runningUsd === 0 && isNews(admission.budget!, run)) {
        void record(host, {
          type: 'budget.refused',
          outcome: 'error',
          ...(conversationId !== undefined && { conversationId }),
          extra: { id: admission.budget, ...(conversationId !== undefined && { conversationId }) },
        })
      }
      return admission
    },
    'usage.arms': async ({ metric, cohort, from = '', to = '9' }) => {
      await ledger.current()
      return index.arms(metric, cohort, from, to)
    },
    'usage.judged': async ({ from = '', to = '9' }) => {
      await ledger.current()
      return { turns: index.judged(from, to) }
    },
    'usage.totals': async ({ provider, account = '' }) => {
      await ledger.current()
      const found = index.account(provider, account)
      return {
        turns: found.turns,
        inputTokens: found.input,
        outputTokens: found.output,
        costUsd: usdOf(found.nanos),
      }
    },
  })
}

/** Refuses a list of budgets of which one does not fit. */
const assertFit = async (host: Pick<Host, 'call' | 'serves'>, budgets: readonly UsageBudget[]): Promise<void> => {
  const ids = budgets.map(({ id }) => id)
  const twice = ids.findIndex((id, at) => ids.indexOf(id) !== at)
  if (twice >= 0)
    refuse('invalid', `budgets[${twice}].id: expected an id of its own, found ${ids[twice]} a second time`, {
      errors: [{ path: `budgets[${twice}].id`, expected: 'an id of its own' }],
    })
  const renewing = budgets.findIndex(({ scope, period }) => scope.kind === 'run' && period !== 'total')
  if (renewing >= 0)
    refuse(
      'invalid',
      `budgets[${renewing}].period: expected total, because scope run counts each run by itself, found `
        + budgets[renewing]!.period,
      { errors: [{ path: `budgets[${renewing}].period`, expected: 'total' }] },
    )
  for (const { id, scope } of budgets) {
    if ((scope.kind === 'provider' || scope.kind === 'account') && !(await isProvider(host, scope.provider)))
      refuse(
        'unprocessable',
        `the scope of ${id} names the provider ${JSON.stringify(scope.provider)}, which is unknown`,
      )
  }
}

/** Whether turns can run on a provider; where nothing runs turns, any may be named. */
const isProvider = async (host: Pick<Host, 'call' | 'serves'>, provider: string): Promise<boolean> => {
  if (!(await host.serves('GET /agent/commands'))) return true
  return host.call('GET /agent/commands', { agent: provider }).then(
    () => true,
    error => {
      if ((error as { reason?: string }).reason === 'unprocessable') return false
      throw error
    },
  )
}

/** Publishes that usage changed, with the budgets whose state changed, at most once a second. */
const publisher = (host: Pick<Host, 'call' | 'log' | 'signal'>): ((ids: readonly string[]) => void) => {
  const changed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let last = -Infinity
  host.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  const publish = () => {
    timer = undefined
    last = performance.now()
    const keys = changed.size > 0 ? [...changed] : [undefined]
    changed.clear()
    for (const key of keys)
      host
        .call('kernel.events.publish', { domain: 'usage', ...(key !== undefined && { key }) })
        .catch(error => host.signal.aborted || host.log.warn('publishing usage failed', { error: String(error) }))
  }
  return ids => {
    for (const id of ids) changed.add(id)
    timer ??= setTimeout(publish, Math.max(0, last + APART - performance.now())).unref()
  }
}

/** Checks the budgets whenever a period ends, from the call of what it answers on. */
const renewals = (host: Pick<Host, 'signal'>, budgets: Budgets, check: () => Promise<void>): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  host.signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  const wait = () => {
    clearTimeout(timer)
    const left = (budgets.renewsAt ?? Infinity) - Date.now()
    timer = setTimeout(() => void check().then(wait), Math.min(LONGEST_WAIT, Math.max(APART, left))).unref()
  }
  return wait
}
