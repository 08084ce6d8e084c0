import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import { limitsOf } from '../../../sdk/node/access/access-view.js'
import { ownedProcesses } from '../machine/calls.js'
import { seenProcesses } from '../machine/processes.js'
import { billsOf, processBills } from './bills.js'
import type { MetricsCalls } from './contract.js'
import { Exposition } from './exposition.js'

/** A reading that those who ask meanwhile share: one answer has several figures of it. */
const shared = <T>(read: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | undefined
  return () =>
    (running ??= read().finally(() => {
      running = undefined
    }))
}

/** Serves what each part of the sandbox did and uses. */
export const metricsCalls = (host: Pick<Host, 'call' | 'collect' | 'place' | 'serves'>): Handlers<MetricsCalls> => {
  const owned = ownedProcesses(host)
  const figures = shared(() => host.call('kernel.figures'))
  const processes = shared(async () => {
    const seen = await seenProcesses()
    return processBills(seen, process.pid, await owned(seen))
  })
  const conversations = shared(async () =>
    (await host.serves('agent.conversations'))
      ? (await host.call('agent.conversations', { archived: false })).conversations
      : [],
  )
  const exposition = new Exposition({
    ...{ figures, processes },
    conversations: async () => {
      const states = new Map<string, number>()
      for (const { live } of await conversations()) {
        const state = live?.state ?? 'settled'
        states.set(state, (states.get(state) ?? 0) + 1)
      }
      return states
    },
    waiting: async () => (await conversations()).reduce((sum, { waiting }) => sum + waiting, 0),
  })
  return {
    'GET /metrics': async (_input, { caller }) => {
      if (limitsOf(caller)) refuse('forbidden', 'the figures are those of the whole sandbox: you are limited to areas')
      return {
        'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8',
        headers: { 'cache-control': 'no-store' },
        data: await exposition.text(),
      }
    },
    'GET /system/plugins': async (_input, { caller }) => ({
      plugins: billsOf((await figures()).calls),
      // Whose reach is limited sees nothing of others' programs.
      processes: limitsOf(caller) ? [] : await processes(),
    }),
  }
}
