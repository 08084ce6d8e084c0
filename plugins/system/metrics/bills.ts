import type { CallFigure } from '../../../sdk/kernel.js'
import type { OwnedProcess } from '../machine/contract.js'
import { ownersOf, type Seen } from '../machine/processes.js'
import type { PluginBill, ProcessBill } from './contract.js'

const SERVER_FAULT = 500

/** Adds the figures of routes up by the groups that serve them. */
export const billsOf = (calls: readonly CallFigure[]): PluginBill[] => {
  const bills = new Map<string, PluginBill>()
  for (const { group, seconds, statuses, timed } of calls) {
    const bill = bills.get(group) ?? { name: group, calls: 0, errors: 0, timed: 0, answerSeconds: 0 }
    bills.set(group, bill)
    bill.timed += timed
    bill.answerSeconds += seconds
    for (const { status, count } of statuses) {
      bill.calls += count
      if (status >= SERVER_FAULT) bill.errors += count
    }
  }
  return [...bills.values()].toSorted((one, other) => other.answerSeconds - one.answerSeconds)
}

/** Adds up what processes of the sandbox use, by kind; those of extensions one by one. */
export const processBills = (seen: readonly Seen[], daemon: number, owned: readonly OwnedProcess[]): ProcessBill[] => {
  const whose = ownersOf(seen, daemon, owned)
  const bills = new Map<string, ProcessBill>()
  for (const process of seen) {
    const { origin, session } = whose(process)
    if (origin === 'other') continue
    const named = origin === 'extension' && session !== undefined ? { session } : {}
    const key = `${origin} ${named.session ?? ''}`
    const bill = bills.get(key) ?? { origin, ...named, processes: 0, cpuSeconds: 0, rssBytes: 0 }
    bills.set(key, bill)
    bill.processes += 1
    bill.cpuSeconds += process.cpuSeconds
    bill.rssBytes += process.rssBytes
  }
  return [...bills.values()].toSorted((one, other) => other.rssBytes - one.rssBytes)
}
