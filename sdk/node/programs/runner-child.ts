// Starts programs for a daemon that uses much memory. Started by runner.ts; ends with the daemon.
import { codeOf } from '../files/paths.js'
import { runHere } from './run-here.js'
import type { RunnerRequest, RunnerMessage } from './runner.js'

/** More unsent output than this pauses its program, in bytes. */
const FULL = 1 << 20

const stops = new Map<number, AbortController>()
let unsent = 0

const post = (message: RunnerMessage, bytes = 0): Promise<void> => {
  unsent += bytes
  return new Promise(resolve =>
    process.send!(message, () => {
      unsent -= bytes
      resolve()
    }),
  )
}

const start = async ({
  id,
  program,
  args,
  options,
  reportsStart,
  reportsOutput,
}: Exclude<RunnerRequest, { stop: number }>): Promise<void> => {
  const stop = new AbortController()
  stops.set(id, stop)
  try {
    const result = await runHere(program, args, {
      ...options,
      signal: stop.signal,
      ...(reportsStart && { onStart: pid => void post({ id, pid }) }),
      ...(reportsOutput && {
        onOutput: (piece, from) => {
          const sent = post({ id, piece, from }, piece.length)
          return unsent > FULL ? sent : undefined
        },
      }),
    })
    await post({ id, result })
  } catch (error) {
    const { message, syscall } = error as NodeJS.ErrnoException
    const code = codeOf(error)
    await post({
      id,
      failed: { message, ...(code !== undefined && { code }), ...(syscall !== undefined && { syscall }) },
    })
  } finally {
    stops.delete(id)
  }
}

process.on(
  'message',
  (request: RunnerRequest) => void ('stop' in request ? stops.get(request.stop)?.abort() : start(request)),
)
process.once('disconnect', () => process.exit())
// Ignores signals from the daemon's terminal: the daemon decides how its programs end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
void post({ ready: true })
