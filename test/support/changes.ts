import { watch } from 'node:fs'
import type { Client } from '../../sdk/client.js'

/** Resolves once a condition holds; checks it at every change in a folder. */
export const onceIn = (folder: string, holds: () => boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    const look = (): void => {
      if (!holds()) return
      watcher.close()
      resolve()
    }
    const watcher = watch(folder, look).on('error', reject)
    look()
  })

/** What a call answers once something holds of it; reads again at every change event of a domain. */
export const readUntil = async <T>(
  client: Client,
  domain: string,
  read: () => Promise<T>,
  holds: (found: T) => boolean,
): Promise<T> => {
  const over = new AbortController()
  try {
    for await (const event of await client.call('GET /events', {}, { signal: over.signal })) {
      const isNews = event.kind === 'hello' || event.kind === 'heartbeat'
      if (!isNews && !(event.kind === 'runtimeChanged' && event.domains.some(each => each === domain))) continue
      const found = await read()
      if (!holds(found)) continue
      // Otherwise the end of the loop would wait for the next event.
      over.abort()
      return found
    }
  } finally {
    over.abort()
  }
  throw new Error('the events ended')
}
