#!/usr/bin/env node
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageVersion } from './node/package.js'
import { keepCompiled } from './node/state-folder.js'

keepCompiled(process.env)
const { runProgram } = await import('./cli/program.js')

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { stdin, stdout, stderr, env } = process
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => (stopping.signal.aborted ? process.exit(130) : stopping.abort(signal)))
}
// Whoever read our output has gone: there is nobody left to tell.
stdout.on('error', () => process.exit(0))

process.exitCode = await runProgram(process.argv.slice(2), {
  in: stdin,
  out: stdout,
  err: stderr,
  env,
  cwd: process.cwd(),
  root,
  version: packageVersion(root),
  colour: stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb',
  ...(stdout.isTTY && env.TERM !== 'dumb' && { columns: stdout.columns }),
  interactive: stdin.isTTY === true && stdout.isTTY === true,
  signal: stopping.signal,
})
