import { flushCompileCache } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findOwnImports } from '../sdk/node/programs/own-imports.js'
import { packageFolder } from '../sdk/node/programs/package.js'
import { boundCompiled, keepCompiled, noteDataFolder } from '../sdk/node/files/state-folder.js'
import type { Daemon } from './daemon.js'

keepCompiled(process.env)
findOwnImports(new URL('../', import.meta.url).href)
const { closeInherited } = await import('../sdk/node/programs/inherited.js')
closeInherited()
const { assertNameable, readConfig } = await import('./config/config.js')
const { StartError, WrongUse } = await import('./config/start-error.js')
const { holdFolder } = await import('./storage/hold-folder.js')
const { createLog } = await import('./logs/log.js')
const { startDaemon } = await import('./daemon.js')
const { RunLogs } = await import('./logs/run-logs.js')
const { saysWhatItWaitsFor } = await import('./config/slow-start.js')

const STOP_WITHIN = 10_000

/** Leaves time for the answer that announces the restart to be sent. */
const RESTART_AFTER = 200

/** Runs a daemon until SIGTERM or SIGINT; one that cannot start prints a sentence and exits with 1, or 2 if misused. */
const run = async (): Promise<void> => {
  const root = dirname(dirname(fileURLToPath(import.meta.url)))
  assertNameable('program', root)
  const config = readConfig(process.argv.slice(2), process.env)
  const release = holdFolder(config.data, config.workspace)
  const logs = new RunLogs(join(config.data, 'logs'))
  const log = createLog(config.json, undefined, logs.keep)
  let stopping = false
  let daemon: Daemon | undefined
  const stop = async () => {
    if (stopping) return
    stopping = true
    setTimeout(() => process.exit(1), STOP_WITHIN).unref()
    await daemon?.stop()
    await logs.end()
    release()
    process.exit(0)
  }
  const start = async (port: number): Promise<void> => {
    const hints: string[] = []
    const restart = () => void setTimeout(() => void again().catch(failed), RESTART_AFTER)
    daemon = await startDaemon({
      config: { ...config, port },
      root,
      manifests: join(packageFolder(root), 'manifests'),
      log,
      restart,
      say: line => hints.push(line.replace('sandbox login', `${process.env.SANDBOX_COMMAND || 'sandbox'} login`)),
    })
    await saysWhatItWaitsFor(daemon, log)
    if (!stopping) announce(daemon, config, hints)
  }
  /** Restarts in the same process, so that a supervisor sees one daemon at one address. */
  const again = async () => {
    if (stopping || !daemon) return
    const { url } = daemon
    await daemon.stop()
    if (!stopping) await start(Number(new URL(url).port || 80))
  }
  const failed = async (error: unknown) => {
    await logs.end()
    release()
    exitWith(error)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop())
  // Stops when the parent process has ended: a killed parent could not stop the daemon.
  if (process.env.SANDBOX_PARENT)
    setInterval(() => String(process.ppid) === process.env.SANDBOX_PARENT || void stop(), 500).unref()
  logs.watch(log)
  noteDataFolder(process.env, config).forEach(words => log.warn(words))
  await start(config.port).catch(failed)
  logs.reportLast()
  flushCompileCache()
  await boundCompiled(process.env)
}

/** Prints why the daemon cannot start and exits; an unexpected error is printed with its stack. */
const exitWith = (error: unknown): never => {
  const words =
    error instanceof StartError ? error.message : error instanceof Error ? (error.stack ?? error.message) : error
  process.stderr.write(`sandbox: ${words}\n`)
  process.exit(error instanceof WrongUse ? 2 : 1)
}

const announce = (
  { url, claim }: { url: string; claim?: string },
  { json, workspace }: { json: boolean; workspace: string },
  hints: readonly string[],
): void => {
  if (json) return void process.stdout.write(`${JSON.stringify({ ready: true, url, pid: process.pid, claim })}\n`)
  process.stdout.write(`sandbox: ready at ${url} for ${workspace}\n`)
  if (claim !== undefined)
    process.stderr.write(
      `sandbox: the claim code of this start is ${claim}: the first person to sign in may be asked for it\n`,
    )
  for (const hint of hints) process.stderr.write(`sandbox: ${hint}\n`)
}

await run().catch(exitWith)
