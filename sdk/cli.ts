#!/usr/bin/env node
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findOwnImports } from './node/programs/own-imports.js'
import { packageVersion } from './node/programs/package.js'
import { keepCompiled } from './node/files/state-folder.js'

const LEAST_NODE = 24
const { node } = process.versions
if (Number.parseInt(node) < LEAST_NODE) {
  process.stderr.write(
    `sandbox: expected Node ${LEAST_NODE} or newer, found ${node} at ${process.execPath}; put a newer one first `
      + `on PATH\n`,
  )
  process.exit(1)
}
keepCompiled(process.env)
findOwnImports(new URL('../', import.meta.url).href)
const { runProgram } = await import('./cli/program.js')
const { StillWorking } = await import('./cli/terminal/still-working.js')
const { wantsColour, widthOf } = await import('./cli/terminal/appearance.js')

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { stdin, stdout, stderr, env } = process
const width = widthOf(env, stdout.isTTY ? stdout.columns : undefined)
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => (stopping.signal.aborted ? process.exit(130) : stopping.abort(signal)))
}
// The reader of standard output has closed it; exits without an error.
stdout.on('error', () => process.exit(0))

const colour = wantsColour(env, stdout.isTTY === true)
const drawn =
  stdout.isTTY && env.TERM !== 'dumb'
    ? { columns: stdout.columns, sign: new StillWorking({ out: stdout, columns: stdout.columns, colour }) }
    : {}

process.exitCode = await runProgram(process.argv.slice(2), {
  in: stdin,
  out: stdout,
  err: stderr,
  env,
  cwd: process.cwd(),
  root,
  version: packageVersion(root),
  colour,
  ...(width !== undefined && { width }),
  ...drawn,
  interactive: stdin.isTTY === true && stdout.isTTY === true,
  signal: stopping.signal,
})
