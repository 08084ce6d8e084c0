// Runs commands of the program one after another in a terminal, and writes their lines into a file that outlives the
// daemon. Started by terminal-jobs.ts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ignored } from '../../../sdk/index.js'
import { isJobEnd, keptLines, lastLines, cliLineOf } from './cli-lines.js'
import { maskedLine, maskOf } from './mask.js'

/** What it runs, as its only argument. */
export interface JobOrder {
  /** The file of the program. */
  readonly program: string
  readonly workspace: string
  /** Where its lines go. */
  readonly file: string
  /** A folder with a file for each secret, which is read once. */
  readonly secrets?: string
  readonly commands: readonly (readonly string[])[]
}

const ERROR_LINES = 15
const MOST_ERRORS = 16 * 1024

const order = JSON.parse(process.argv[2] ?? '') as JobOrder
const { program, workspace, file, secrets, commands } = order
const values = Object.fromEntries(
  secrets === undefined ? [] : readdirSync(secrets).map(name => [name, readFileSync(join(secrets, name), 'utf8')]),
)
const mask = maskOf(Object.values(values))
const kept = keptLines()
const lines = openSync(file, 'a', 0o600)

let running: ReturnType<typeof spawn> | undefined
let stopped = false
for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const)
  process.on(signal, () => {
    stopped = true
    running?.kill('SIGTERM')
  })
process.stdout.on('error', ignored('the job goes on without its terminal'))

const shownOf = (line: { readonly [field: string]: unknown }): string => {
  const { kind, message, phase, id, state, action, detail, command, code, text } = line
  const words = {
    start: [`$ sandbox ${String(command)}`],
    log: [message],
    error: [message],
    text: [text],
    node: [phase, id, action, state, detail],
    exit: code === 0 ? [] : [`${String(command)} ended with ${String(code)}`],
    result: [],
  }[String(kind)]
  return (words ?? []).filter(word => word !== undefined).join(' ')
}

const runOne = async (args: readonly string[]) => {
  const child = spawn(process.execPath, [program, ...args, '--json'], {
    cwd: workspace,
    env: { ...process.env, ...values },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running = child
  if (stopped) child.kill('SIGTERM')
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (errors = (errors + piece).slice(-MOST_ERRORS)))
  const ended = once(child, 'close') as Promise<[code: number | null, signal: string | null]>
  for await (const text of createInterface({ input: child.stdout, crlfDelay: Infinity })) {
    const found = cliLineOf(text)
    if (isJobEnd(found)) continue
    for (const line of kept(maskedLine(found, mask))) {
      writeSync(lines, `${JSON.stringify(line)}\n`)
      const shown = shownOf(line).replace(/[\x00-\x1f\x7f]+/g, ' ')
      if (shown !== '') process.stdout.write(`${shown}\n`)
    }
  }
  const [code, signal] = await ended
  return { code: code ?? 1, ...(signal !== null && { signal }), errors: mask(lastLines(errors, ERROR_LINES)) }
}

let end = { code: 0, errors: '' }
for (const args of commands) {
  end = await runOne(args)
  if (end.code !== 0 || stopped) break
}
// Without this line it was interrupted.
if (!stopped) writeSync(lines, `${JSON.stringify({ kind: 'ended', ...end })}\n`)
closeSync(lines)
process.exit(stopped ? 143 : end.code)
