import type { LimitWindow } from '../../agent/contract.js'
import type { AccountLimits, ProviderLimits, StandingRefusal } from '../contract.js'

/** What counts of an account for the choice. */
export interface ChoosableAccount {
  readonly id: string
  readonly label: string
  readonly connectedAt: number
  readonly needsReauth: boolean
  readonly windows: readonly LimitWindow[]
  readonly refusal?: StandingRefusal & { readonly until: number }
}

const ORDER: readonly AccountLimits['standing'][] = ['room', 'unmeasured', 'spent', 'refused', 'needs-reauth']

const limitsOf = ({ id, label, needsReauth, windows, refusal }: ChoosableAccount): AccountLimits => {
  const fullest = windows.reduce((most, { utilization }) => Math.max(most, utilization), 0)
  const full = windows.filter(({ utilization }) => utilization >= 100)
  const limited = refusal?.kind === 'limit'
  const spent = full.length > 0 || limited
  const standing = needsReauth
    ? 'needs-reauth'
    : refusal && !limited
      ? 'refused'
      : spent
        ? 'spent'
        : windows.length > 0
          ? 'room'
          : 'unmeasured'
  const opens = [...full.map(({ resetsAt }) => resetsAt), limited ? refusal.until : undefined]
  const known = opens.filter(moment => moment !== undefined)
  return {
    account: id,
    label,
    room: limited ? 0 : 100 - fullest,
    standing,
    ...(standing === 'spent' && known.length > 0 && { reopensAt: Math.max(...known) }),
    windows: [...windows],
    ...(refusal && { refusal: shownRefusal(refusal) }),
  }
}

/** A refusal as callers see it. */
export const shownRefusal = ({ at, kind, message, account }: StandingRefusal): StandingRefusal => ({
  at,
  kind,
  message,
  ...(account !== undefined && { account }),
})

/** Ranks accounts as turns get them, and says which one a turn gets that names none. */
export const ranked = (
  accounts: readonly ChoosableAccount[],
): Pick<ProviderLimits, 'limits' | 'next' | 'reopensAt'> => {
  const connectedAt = new Map(accounts.map(account => [account.id, account.connectedAt]))
  const limits = accounts
    .map(limitsOf)
    .sort(
      (a, b) =>
        ORDER.indexOf(a.standing) - ORDER.indexOf(b.standing)
        || (a.standing === 'spent' ? (a.reopensAt ?? Infinity) - (b.reopensAt ?? Infinity) || 0 : b.room - a.room)
        || connectedAt.get(a.account)! - connectedAt.get(b.account)!,
    )
  const [first] = limits
  const spent = limits.filter(({ standing }) => standing === 'spent')
  // A refused account is tried where nothing else is there, so that a refusal can end.
  const serves = first && (first.standing === 'room' || first.standing === 'unmeasured' || first.standing === 'refused')
  const opens = spent.flatMap(({ reopensAt }) => reopensAt ?? [])
  return {
    limits,
    ...(serves && { next: first.account }),
    ...(!serves && opens.length > 0 && { reopensAt: Math.min(...opens) }),
  }
}
