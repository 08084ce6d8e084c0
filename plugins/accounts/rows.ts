import type { Caller } from '../../sdk/index.js'
import type { LimitWindow } from '../agent/contract.js'
import type { ProviderDefinition } from '../providers/contract.js'
import type { ProviderAccount, StandingRefusal } from './contract.js'
import type { StoredAccount } from './stored-accounts.js'

/** Whether a caller may see who accounts sign in as. */
export const seesPeople = ({ kind, role }: Caller): boolean =>
  kind === 'session' && (role === 'maintainer' || role === 'owner')

/** The name of an account: as a person gave it, else its e-mail for those who may see it, else a number. */
export const accountLabel = (
  { label, email, number }: StoredAccount,
  definition: Pick<ProviderDefinition, 'label'>,
  people = false,
): string => label ?? (people ? email : undefined) ?? (number > 0 ? `${definition.label} ${number}` : definition.label)

/** An account as a caller sees it. */
export const accountRow = (
  account: StoredAccount,
  definition: ProviderDefinition,
  seen: { people: boolean; windows: LimitWindow[]; rates: LimitWindow[]; refusal?: StandingRefusal },
): ProviderAccount => {
  const { id, email, organization, scope, connectedAt, problem } = account
  const { people, windows, rates, refusal } = seen
  const detail = problem ?? (refusal && refusal.kind !== 'limit' ? refusal.message : undefined)
  return {
    id,
    label: accountLabel(account, definition, people),
    ...(people && email !== undefined && { email }),
    ...(organization !== undefined && { organization }),
    ...(scope !== undefined && { scope }),
    connectedAt,
    needsReauth: problem !== undefined,
    ...(detail !== undefined && { detail }),
    ...(windows.length > 0 && {
      usage: { windows, measuredAt: Math.max(...windows.map(({ measuredAt }) => measuredAt)) },
    }),
    ...(rates.length > 0 && { rates }),
  }
}
