import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KERNEL } from '../../../kernel/events.js'
import type { AccountTotals, Admission, AdmissionAsked, UsageTurn } from '../../../plugins/usage/contract.js'
import type { LedgerLine } from '../../../plugins/usage/line.js'
import type { Support } from '../../support/daemon.js'

/** A settled turn, as the engine reports it. */
export const turnOf = (more: Partial<UsageTurn> = {}): UsageTurn => ({
  at: Date.now(),
  provider: 'script',
  model: 'script-1',
  harness: 'native',
  turns: 1,
  inputTokens: 100,
  outputTokens: 10,
  cacheReadTokens: 0,
  cacheCreationTokens: 0,
  durationMs: 1_000,
  unattended: false,
  outcome: 'ok',
  ...more,
})

const call = (daemon: Support, name: string, input: unknown): Promise<unknown> =>
  daemon.kernel.calls.answer(name, input, { ...KERNEL, trusted: false })

/** Records a turn as another group does. */
export const recordTurn = (daemon: Support, turn: Partial<UsageTurn>): Promise<unknown> =>
  call(daemon, 'usage.record', turnOf(turn))

/** Asks whether a turn may start, or go on. */
export const admit = (daemon: Support, asked: Partial<AdmissionAsked> = {}): Promise<Admission> =>
  call(daemon, 'usage.admit', {
    provider: 'script',
    model: 'script-1',
    unattended: false,
    ...asked,
  }) as Promise<Admission>

/** What one account has used. */
export const totalsOf = (daemon: Support, account?: string): Promise<AccountTotals> =>
  call(daemon, 'usage.totals', {
    provider: 'script',
    ...(account !== undefined && { account }),
  }) as Promise<AccountTotals>

/** Every line of the ledger as it lies on the disk. */
export const ledgerLines = ({ data }: { data: string }): LedgerLine[] => {
  const folder = ['journals', 'usage', 'ledger'].reduce((at, name) => join(at, name), data)
  return !existsSync(folder)
    ? []
    : readdirSync(folder)
        .sort()
        .flatMap(name => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean))
        .map(line => JSON.parse(line) as LedgerLine)
}
