// Loaded before a daemon (`--import`): logs every process it starts, one per line.
import { ChildProcess } from 'node:child_process'
import { appendFileSync } from 'node:fs'

interface Starting {
  readonly file: string
  readonly args?: readonly string[]
}

const { SPAWNS } = process.env
const started = ChildProcess.prototype as unknown as { spawn(options: Starting): unknown }
const { spawn } = started
started.spawn = function (options) {
  if (SPAWNS !== undefined)
    appendFileSync(SPAWNS, `${JSON.stringify([options.file, ...(options.args ?? []).slice(1)])}\n`)
  return Reflect.apply(spawn, this, [options])
}
