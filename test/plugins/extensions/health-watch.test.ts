import t from 'tap'
import type { LoadedExtension } from '../../../plugins/extensions/listing/catalog.js'
import type { KeptExtension, UpdateHealth } from '../../../plugins/extensions/records/kept-extension.js'
import type { BackendStatus } from '../../../plugins/extensions/runtime.js'
import { HealthWatch, type WatchedExtensions } from '../../../plugins/extensions/update/health.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'

const id = 'ada.notes'
const PROBES = [100, 200]
const version = (ref: string) => ({ ref, approval: { powers: [], by: 'ada@example.org', at: '' } })
const updatedAt = (at: string, updates: 'auto' | 'notify' = 'auto'): KeptExtension => ({
  ...{ id, source: 'installed', enabled: true },
  installed: {
    ...{ url: 'notes', current: version('b'), previous: version('a') },
    ...{ policy: { updates, advisories: 'notify' }, health: { state: 'watching', fromRef: 'a', at } },
  },
})

/** What a watch of one extension sees. */
const watchedWith = (record: KeptExtension, status: () => BackendStatus): WatchedExtensions => ({
  host: {
    call: () => Promise.reject(new Error('no call is made')),
    serves: async () => false,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: new AbortController().signal,
  },
  kept: { all: () => [record], get: () => record, put: async () => {} },
  turns: new KeyedMutex(),
  keep: async () => {},
  get: () => ({ id }) as LoadedExtension,
  backendOf: status,
  autoStarted: () => [],
})

/** A watch of one updated extension; resolves with the health that it records, and when it looked. */
const watched = async (record: KeptExtension, status: (nth: number) => BackendStatus) => {
  const looks: number[] = []
  const { promise, resolve } = Promise.withResolvers<UpdateHealth | undefined>()
  const all: WatchedExtensions = {
    ...watchedWith(record, () => {
      looks.push(performance.now())
      return status(looks.length)
    }),
    keep: async ({ installed }) => resolve(installed?.health),
  }
  const began = performance.now()
  const kept = setInterval(() => {}, 1_000)
  new HealthWatch(
    all,
    async (_, health) => {
      resolve(health)
      return { from: 'b', ref: 'a' }
    },
    PROBES,
  ).resume()
  const health = await promise
  clearInterval(kept)
  return { health, after: looks.map(at => at - began) }
}
const longAgo = new Date(Date.now() - 70_000).toISOString()

t.test('an update whose parts run at both probes is healthy', async t => {
  const { health, after } = await watched(updatedAt(longAgo), () => ({ state: 'running' }))
  t.match(health, { state: 'healthy', fromRef: 'a' })
  t.equal(after.length, 2)
})

t.test('after a restart the probes wait for what is only starting', async t => {
  const { after } = await watched(updatedAt(longAgo), () => ({ state: 'running' }))
  t.ok(after[0]! >= PROBES[0]! - 2, `it looked after ${after[0]} ms`)
})

t.test('one that fails at the second probe is unhealthy', async t => {
  const fails = (nth: number): BackendStatus => ({ state: nth === 1 ? 'running' : 'error', detail: 'it ended' })
  const notified = await watched(updatedAt(longAgo, 'notify'), fails)
  t.match(notified.health, { state: 'unhealthy', detail: 'its backend is error: it ended' })
  t.notOk(notified.health?.autoReverted)
  t.match((await watched(updatedAt(longAgo), fails)).health, { state: 'unhealthy', autoReverted: true })
})

t.test('an extension that was removed, or is being removed, is looked at no more', async t => {
  for (const gone of [undefined, { ...updatedAt(longAgo), removing: {} }]) {
    let looks = 0
    let asked = 0
    const record = updatedAt(longAgo)
    const all: WatchedExtensions = {
      ...watchedWith(record, () => {
        looks += 1
        return { state: 'running' }
      }),
      kept: {
        all: () => [record],
        get: () => {
          // It is there when the watch begins.
          asked += 1
          return asked === 1 ? record : gone
        },
        put: async () => {},
      },
    }
    new HealthWatch(all, () => Promise.reject(new Error('nothing is reverted')), PROBES).resume()
    await new Promise(resolve => setTimeout(resolve, 2 * PROBES.at(-1)!))
    t.equal(looks, 0)
    t.equal(asked, 2, 'the first probe ends the watch')
  }
})
