import { open } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { ignored } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { CliLine } from '../contract.js'
import { cliLineOf } from './cli-lines.js'

const PIECE = 256 * 1024
const LOOK_MS = 100

/** The complete lines of a file from a byte on, and where the next one begins. */
const linesFrom = async (file: string, from: number): Promise<{ lines: string[]; next: number }> => {
  const handle = await open(file, 'r').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (!handle) return { lines: [], next: from }
  try {
    const parts: Buffer[] = []
    let size = 0
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(PIECE), 0, PIECE, from + size)
      if (bytesRead === 0) break
      size += bytesRead
      parts.push(buffer.subarray(0, bytesRead))
    }
    const bytes = Buffer.concat(parts)
    const end = bytes.lastIndexOf(0x0a) + 1
    const text = bytes.subarray(0, end).toString()
    return { lines: text === '' ? [] : text.slice(0, -1).split('\n'), next: from + end }
  } finally {
    await handle.close()
  }
}

/** Every line of a file. */
export const readJobLines = async (file: string): Promise<CliLine[]> => (await linesFrom(file, 0)).lines.map(cliLineOf)

/** How a file is followed. */
export interface FollowedFile {
  readonly file: string
  /** Whether no line comes any more. */
  readonly over: () => Promise<boolean> | boolean
  readonly signal: AbortSignal
}

/** The lines of a file, and those that are written to it until it is over; undefined: none came for a while. */
export async function* followLines({ file, over, signal }: FollowedFile): AsyncGenerator<CliLine | undefined> {
  for (let at = 0; ;) {
    signal.throwIfAborted()
    // What is written before the end is read after it.
    const isOver = await over()
    const { lines, next } = await linesFrom(file, at)
    at = next
    for (const line of lines) yield cliLineOf(line)
    if (lines.length > 0) continue
    if (isOver) return
    yield undefined
    await delay(LOOK_MS, undefined, { signal })
  }
}

/** How long a reader waits for a line before it gets a heartbeat. */
const HEARTBEAT_MS = 15_000

/** Puts a heartbeat where no line came for 15 s. */
export async function* withHeartbeats(
  lines: AsyncIterable<CliLine | undefined>,
  silenceMs = HEARTBEAT_MS,
): AsyncGenerator<CliLine> {
  const iterator = lines[Symbol.asyncIterator]()
  let last = performance.now()
  try {
    for (let next: Promise<IteratorResult<CliLine | undefined>> | undefined; ;) {
      next ??= iterator.next()
      const found = await before(next, Math.max(0, last + silenceMs - performance.now()))
      if (found?.done) return
      if (found) next = undefined
      if (!found?.value && performance.now() - last < silenceMs) continue
      last = performance.now()
      yield found?.value ?? { kind: 'heartbeat' }
    }
  } finally {
    await iterator.return?.()
  }
}

/** What a promise gives within a time; undefined: nothing, and it may give it later. */
const before = async <T>(promise: Promise<T>, ms: number): Promise<T | undefined> => {
  const over = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => over.resolve(undefined), ms)
  promise.catch(ignored('the next wait gets it'))
  try {
    return await Promise.race([promise, over.promise])
  } finally {
    clearTimeout(timer)
  }
}
