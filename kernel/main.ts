import { flushCompileCache } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../sdk/node/package.js'
import { keepCompiled } from '../sdk/node/state-folder.js'

keepCompiled(process.env)
const { closeInherited } = await import('../sdk/node/inherited.js')
closeInherited()
const { readConfig, StartError } = await import('./config.js')
const { holdFolder } = await import('./folder.js')
const { createLog } = await import('./log.js')
const { startDaemon } = await import('./daemon.js')
const { RunLogs } = await import('../sdk/node/logs/run-logs.js')

const STOP_WITHIN = 10_000

/** Runs a daemon until it is told to stop; a start that cannot happen is one sentence and exit 1. */
const run = async (): Promise<void> => {
  const root = dirname(dirname(fileURLToPath(import.meta.url)))
  const config = readConfig(process.argv.slice(2), process.env)
  const release = holdFolder(config.data)
  const logs = new RunLogs(join(config.data, 'logs'))
  const log = createLog(config.json, undefined, logs.keep)
  const hints: string[] = []
  try {
    const daemon = await startDaemon({ config, root, manifests: join(packageFolder(root), 'manifests'), log, say: line => hints.push(line) })
    let stopping = false
    const stop = async () => {
      if (stopping) return
      stopping = true
      setTimeout(() => process.exit(1), STOP_WITHIN).unref()
      await daemon.stop()
      await logs.end()
      release()
      process.exit(0)
    }
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop())
    logs.watch(log)
    announce(daemon, config, hints)
    await daemon.ready
    logs.tellOfLast()
    flushCompileCache()
  } catch (error) {
    await logs.end()
    release()
    throw error
  }
}

const announce = ({ url, claim }: { url: string; claim?: string }, { json, workspace }: { json: boolean; workspace: string }, hints: readonly string[]): void => {
  if (json) return void process.stdout.write(`${JSON.stringify({ ready: true, url, pid: process.pid, ...(claim !== undefined && { claim }) })}\n`)
  process.stdout.write(`sandbox: ready at ${url} for ${workspace}\n`)
  if (claim !== undefined) process.stderr.write(`sandbox: the claim code of this start is ${claim}: whoever signs in first may be asked for it\n`)
  for (const hint of hints) process.stderr.write(`sandbox: ${hint}\n`)
}

try {
  await run()
} catch (error) {
  process.stderr.write(`sandbox: ${error instanceof StartError ? error.message : error instanceof Error ? (error.stack ?? error.message) : error}\n`)
  process.exit(1)
}
