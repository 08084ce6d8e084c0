import type { Registry } from 'prom-client'
import type { CallFigure, KernelFigures } from '../../../sdk/kernel.js'
import type { ProcessBill } from './contract.js'

/** What the figures are read from, each time. */
export interface MetricSources {
  readonly figures: () => Promise<KernelFigures>
  readonly processes: () => Promise<readonly ProcessBill[]>
  /** How many conversations of the board are in each state. */
  readonly conversations: () => Promise<ReadonlyMap<string, number>>
  /** How many messages wait for their turn. */
  readonly waiting: () => Promise<number>
}

type Labels = { readonly [name: string]: string }
type Sample = readonly [labels: Labels, value: number, suffix?: string]

/** A family of figures that are counted elsewhere. */
interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly read: () => Promise<readonly Sample[]>
}

/** The samples of a histogram: the answers within each bound, all answers, and their time together. */
const timesOf = ({ call, group, seconds, timed, within }: CallFigure): Sample[] => {
  const labels = { group, call }
  return [
    ...within.map(({ seconds, count }): Sample => [{ ...labels, le: String(seconds) }, count, '_bucket']),
    [{ ...labels, le: '+Inf' }, timed, '_bucket'],
    [labels, seconds, '_sum'],
    [labels, timed, '_count'],
  ]
}

const families = (from: MetricSources): readonly Family[] => {
  const calls = async (samples: (figure: CallFigure) => readonly Sample[]) =>
    (await from.figures()).calls.flatMap(samples)
  const processes = async (value: (bill: ProcessBill) => number) =>
    (await from.processes()).map((bill): Sample => [
      { origin: bill.origin, ...(bill.session && { session: bill.session }) },
      value(bill),
    ])
  return [
    {
      ...{ name: 'sandbox_calls', type: 'counter', help: 'Requests by group, route and status.' },
      read: () =>
        calls(({ call, group, statuses }) =>
          statuses.map(({ status, count }): Sample => [{ group, call, status: String(status) }, count]),
        ),
    },
    {
      ...{ name: 'sandbox_call_seconds', type: 'histogram', help: 'How long answers took; streams are left out.' },
      read: () => calls(figure => (figure.timed > 0 ? timesOf(figure) : [])),
    },
    {
      ...{ name: 'sandbox_streams_open', type: 'gauge', help: 'Streams and WebSockets that are open now.' },
      read: async () => {
        const { streams, sockets } = await from.figures()
        return [
          [{ kind: 'stream' }, streams],
          [{ kind: 'socket' }, sockets],
        ]
      },
    },
    {
      ...{ name: 'sandbox_conversations', type: 'gauge', help: 'Conversations on the board by state.' },
      read: async () => [...(await from.conversations())].map(([state, count]): Sample => [{ state }, count]),
    },
    {
      ...{ name: 'sandbox_messages_waiting', type: 'gauge', help: 'Messages that wait for their turn.' },
      read: async () => [[{}, await from.waiting()]],
    },
    {
      ...{ name: 'sandbox_processes', type: 'gauge', help: 'Processes of the sandbox by what they belong to.' },
      read: () => processes(bill => bill.processes),
    },
    {
      ...{ name: 'sandbox_processes_memory_bytes', type: 'gauge', help: 'Resident memory of these processes.' },
      read: () => processes(bill => bill.rssBytes),
    },
    {
      ...{ name: 'sandbox_processes_cpu_seconds', type: 'gauge', help: 'Processor time of those that run now.' },
      read: () => processes(bill => bill.cpuSeconds),
    },
  ]
}

/** The figures in the text format of OpenMetrics; Node is measured from the first time that they are asked for. */
export class Exposition {
  readonly #from: MetricSources
  #registry: Promise<Registry> | undefined

  constructor(from: MetricSources) {
    this.#from = from
  }

  /** All figures as they are now. */
  async text(): Promise<string> {
    const registry = await (this.#registry ??= this.#open())
    return registry.metrics()
  }

  async #open(): Promise<Registry> {
    const { Registry, collectDefaultMetrics } = (await import('prom-client')).default
    const registry = new Registry()
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
    for (const { name, help, type, read } of families(this.#from)) {
      const get = async () => ({
        ...{ name, help, type, aggregator: 'sum' },
        values: (await read()).map(([labels, value, suffix]) => ({
          ...{ labels, value, metricName: `${name}${suffix ?? ''}` },
        })),
      })
      registry.registerMetric({ name, get } as never)
    }
    collectDefaultMetrics({ register: registry })
    return registry
  }
}
