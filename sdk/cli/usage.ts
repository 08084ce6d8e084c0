import type { MachineUse } from '../../plugins/system/contract.js'
import { asked } from './asked.js'
import { bar, bytesWords } from '../sizes.js'
import { columns, oneLine, stylesOf, type Styles } from './text.js'
import { CONNECTION, type Verb } from './verb.js'

const BAR = 20
const SPARKS = '▁▂▃▄▅▆▇█'

/** Shows what the machine below the sandbox is doing. */
export const usage: Verb = {
  name: 'usage',
  usage: '',
  summary: 'show processors, memory, disks and the largest processes',
  flags: CONNECTION,
  most: 0,
  run: (terminal, given) => asked(terminal, given, (client, options) => client.call('GET /system/usage', { history: '1' }, options),
    ({ machine }) => linesOf(machine, stylesOf(terminal.colour))),
}

const linesOf = ({ cpus, cpuPct, load, memory, disks, daemon, processes, recent }: MachineUse, styles: Styles): string[] => {
  const most = memory.limitBytes ?? memory.totalBytes
  const room = [
    gauge('processors', cpuPct / 100, `${cpuPct.toFixed(0)} % of ${cpus}, load ${load.map(each => each.toFixed(2)).join(' ')}`, styles),
    gauge('memory', memory.usedBytes / most, `${bytesWords(memory.usedBytes)} of ${bytesWords(most)}${memory.limitBytes === undefined ? '' : ' allowed'}`, styles),
    ...disks.map(({ label, totalBytes, freeBytes }) => gauge(`${label} disk`, 1 - freeBytes / totalBytes, `${bytesWords(freeBytes)} free of ${bytesWords(totalBytes)}`, styles)),
  ]
  const history = recent.length > 1 ? [`${'last hour'.padEnd(15)}  ${recent.map(({ cpuPct }) => SPARKS[Math.min(7, Math.floor(cpuPct / 12.5))]).join('')}  processors`] : []
  const rows = processes.map(({ pid, name, origin, session, conversationId, cpuPct, rssBytes }) =>
    [String(pid), `${cpuPct.toFixed(0)} %`, bytesWords(rssBytes), `${origin}${conversationId || session ? ` ${oneLine(conversationId ?? session ?? '')}` : ''}`, oneLine(name)])
  return [
    ...room, ...history, `${'daemon'.padEnd(15)}  ${bytesWords(daemon.rssBytes)}, ${daemon.loopLagMs} ms late, process ${daemon.pid}`, '',
    ...columns([['PID', 'CPU', 'MEMORY', 'OF', 'PROGRAM'], ...rows]),
  ]
}

const gauge = (what: string, share: number, words: string, { red, yellow }: Styles): string => {
  const drawn = bar(share, BAR)
  return `${what.padEnd(15)}  ${share >= 0.95 ? red(drawn) : share >= 0.8 ? yellow(drawn) : drawn}  ${words}`
}
