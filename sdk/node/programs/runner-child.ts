// The process that starts programs for a daemon that holds much memory. Started by runner.ts, and gone with it.
import { codeOf } from '../files/paths.js'
import { runHere } from './run-here.js'
import type { Asked, Told } from './runner.js'

/** Output that waits to be told holds its program up. */
const FULL = 1 << 20

const stops = new Map<number, AbortController>()
let untold = 0

const tell = (told: Told, bytes = 0): Promise<void> => {
  untold += bytes
  return new Promise(resolve =>
    process.send!(told, () => {
      untold -= bytes
      resolve()
    }),
  )
}

const start = async ({
  id,
  program,
  args,
  options,
  tellsStart,
  tellsOutput,
}: Exclude<Asked, { stop: number }>): Promise<void> => {
  const stop = new AbortController()
  stops.set(id, stop)
  try {
    const result = await runHere(program, args, {
      ...options,
      signal: stop.signal,
      ...(tellsStart && { onStart: pid => void tell({ id, pid }) }),
      ...(tellsOutput && {
        onOutput: (piece, from) => {
          const told = tell({ id, piece, from }, piece.length)
          return untold > FULL ? told : undefined
        },
      }),
    })
    await tell({ id, result })
  } catch (error) {
    const { message, syscall } = error as NodeJS.ErrnoException
    const code = codeOf(error)
    await tell({
      id,
      failed: { message, ...(code !== undefined && { code }), ...(syscall !== undefined && { syscall }) },
    })
  } finally {
    stops.delete(id)
  }
}

process.on('message', (asked: Asked) => void ('stop' in asked ? stops.get(asked.stop)?.abort() : start(asked)))
process.once('disconnect', () => process.exit())
// Who ends the daemon from its terminal ends it alone: what runs for it is brought to a safe place first.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
void tell({ ready: true })
