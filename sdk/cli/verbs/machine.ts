import type { CliColumns } from '../../cli-table.js'
import type { MachineUse } from '../../../plugins/system/contract.js'
import { tableRows } from '../calls/answer.js'
import { tableOf } from '../calls/tables.js'
import { SELF } from '../terminal/own-name.js'
import { asked } from '../terminal/asked.js'
import { bar, bytesWords } from '../../sizes.js'
import { stylesOf, type Styles, wrapped } from '../terminal/text.js'
import { durationWords } from '../terminal/values.js'
import { CONNECTION, type Verb } from '../verb.js'

const BAR = 20
/** From this width on, a bar is printed beside its text. */
const WIDE = 80
const SPARKS = '▁▂▃▄▅▆▇█'

/** Shows the load of the machine. */
export const machine: Verb = {
  name: 'machine',
  usage: '',
  summary: 'show processors, memory, disks and the largest processes',
  examples: ['machine', 'machine --json'],
  flags: CONNECTION,
  most: 0,
  run: async (terminal, given) => {
    const columns = (await tableOf(terminal, 'system'))?.verbs.usage?.lists?.processes?.columns ?? {}
    return asked(
      terminal,
      given,
      (client, options) => client.call('GET /system/usage', { history: '1' }, options),
      ({ machine: use }, width) => linesOf(use, columns, stylesOf(terminal.colour), width),
    )
  },
}

const linesOf = (
  { cpus, cpuPct, load, memory, disks, daemon, processes, recent }: MachineUse,
  columns: CliColumns,
  styles: Styles,
  width = Infinity,
): string[] => {
  const most = memory.limitBytes ?? memory.totalBytes
  const room = [
    gauge(
      'processors',
      cpuPct / 100,
      `${cpuPct.toFixed(0)} % of ${cpus}, load ${load.map(each => each.toFixed(2)).join(' ')}`,
      styles,
      width,
    ),
    gauge(
      'memory',
      memory.usedBytes / most,
      `${bytesWords(memory.usedBytes)} of ${bytesWords(most)}${memory.limitBytes === undefined ? '' : ' allowed'}`,
      styles,
      width,
    ),
    ...disks.map(({ label, totalBytes, freeBytes }) =>
      gauge(
        `${label} disk`,
        1 - freeBytes / totalBytes,
        `${bytesWords(freeBytes)} free of ${bytesWords(totalBytes)}`,
        styles,
        width,
      ),
    ),
  ]
  const history =
    recent.length > 1
      ? [
          `${'last hour'.padEnd(width < WIDE ? 0 : 15)}  ${recent
            .slice(width < WIDE ? 13 - width : 0)
            .map(({ cpuPct }) => SPARKS[Math.min(7, Math.floor(cpuPct / 12.5))])
            .join('')}${width < WIDE ? '' : '  processors'}`,
        ]
      : []
  return [
    ...room,
    ...history,
    ...wrapped(
      [
        width < WIDE ? 'daemon:' : 'daemon'.padEnd(16),
        `${bytesWords(daemon.rssBytes)}, ${durationWords(daemon.loopLagMs)} late, process ${daemon.pid}`,
      ].join(' '),
      width,
    ),
    '',
    ...tableRows(processes, columns, { width, now: Date.now(), self: SELF }),
  ]
}

const gauge = (what: string, share: number, words: string, { red, yellow }: Styles, width: number): string => {
  const drawn = bar(share, BAR)
  const coloured = share >= 0.95 ? red(drawn) : share >= 0.8 ? yellow(drawn) : drawn
  return width < WIDE
    ? [...wrapped(`${what}: ${words}`, width), `  ${coloured}`].join('\n')
    : `${what.padEnd(15)}  ${coloured}  ${words}`
}
