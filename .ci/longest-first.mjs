// Loaded into tap's own process, where it puts the test files that take longest first: a long one that is begun last
// runs alone at the end. tap begins files in the order of their names, which it compares with `localeCompare`, and has
// no setting for another order.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

/** About how many seconds the longest files take, for a copy of the project that has not run them yet. */
const LONG = {
  'crash/failpoints': 150,
  'crash/failpoints-second': 150,
  'crash/failpoints-third': 150,
  'crash/random': 150,
  'sdk/node/wall/wall': 120,
  'sdk/cli-daemon': 90,
  'attack/properties': 90,
  'attack/limits': 80,
  'attack/pipes': 80,
  readme: 80,
  apart: 65,
  'attack/network': 60,
  'plugins/agents/conflicts': 45,
  'plugins/agent/copies': 40,
  'plugins/system/terminals-tmux': 40,
  'sdk/node/limits/limiter': 40,
  'attack/network-walls': 35,
  'attack/browser-page': 35,
  'plugins/system/terminals-ptys': 35,
  format: 35,
  'plugins/settings/settings': 30,
  'sdk/cli-outside': 30,
  'plugins/agent/acp-programs': 30,
  'crash/turns': 30,
  'attack/flood': 30,
  'plugins/system/terminals': 30,
  'attack/areas': 25,
  'plugins/activity/activity': 25,
  rules: 25,
}
const FILE = /^dist\/test\/(.*)\.test\.js$/
/** The total is on one of the last lines of a report. */
const TAIL = 400

/** How many seconds a file took when it last ran here. */
const lastOf = file => {
  let opened
  try {
    opened = openSync(join('.tap/test-results', `${file}.tap`))
    const tail = Buffer.alloc(TAIL)
    const read = readSync(opened, tail, 0, TAIL, Math.max(0, fstatSync(opened).size - TAIL))
    const [, ms] = [...tail.toString('utf8', 0, read).matchAll(/^# time=([\d.]+)ms$/gm)].at(-1) ?? []
    return ms === undefined ? undefined : Number(ms) / 1000
  } catch {
    return undefined
  } finally {
    if (opened !== undefined) closeSync(opened)
  }
}

const known = new Map()
const secondsOf = file => {
  if (!known.has(file)) known.set(file, lastOf(file) ?? LONG[FILE.exec(file)[1]] ?? 0)
  return known.get(file)
}

const { localeCompare } = String.prototype
String.prototype.localeCompare = function (other, ...rest) {
  const files = [String(this), String(other)]
  const [own, others] = files.every(name => FILE.test(name)) ? files.map(secondsOf) : [0, 0]
  return others - own || localeCompare.call(this, other, ...rest)
}
