import { ignored } from '../../../../sdk/index.js'
const COMMENT = Buffer.from(': \n\n')
const HEARTBEAT = 15_000
const KINDS = new Set(['message', 'done', 'error'])

/** Events of an extension as server-sent events, with a comment every 15 s. */
export async function* eventPieces(events: AsyncIterable<unknown>): AsyncGenerator<Uint8Array, void> {
  const iterator = events[Symbol.asyncIterator]()
  let next = iterator.next()
  next.catch(ignored('it is thrown where it is awaited'))
  try {
    yield Buffer.from('retry: 1000\n\n')
    for (;;) {
      const item = await withinOr(HEARTBEAT, next)
      if (item === undefined) {
        yield COMMENT
        continue
      }
      if (item.done) return
      yield encoded(item.value)
      next = iterator.next()
      next.catch(ignored('it is thrown where it is awaited'))
    }
  } finally {
    void iterator.return?.()
  }
}

/** The result, or undefined after `ms` without one. */
const withinOr = async <T>(ms: number, work: Promise<T>): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => (timer = setTimeout(() => resolve(undefined), ms)))
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

const encoded = (value: unknown): Buffer => {
  const { event, data, id } = (value ?? {}) as { event?: unknown; data?: unknown; id?: unknown }
  const kind = KINDS.has(String(event)) ? String(event) : 'message'
  const line = typeof id === 'string' && /^[\x21-\x7e]{1,200}$/.test(id) ? `id: ${id}\n` : ''
  return Buffer.from(`event: ${kind}\n${line}data: ${JSON.stringify(data ?? {})}\n\n`)
}
