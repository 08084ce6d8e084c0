import { join } from 'node:path'
import type { Test } from 'tap'
import { JournalStore } from '../../sdk/node/journal/journal-store.js'
import type { Journals, Store } from '../../sdk/index.js'
import { folderOf } from './daemon.js'

/** The kernel's journals in the folder of the test, as a plugin sees them. */
export const journalsIn = (t: Test): Journals => {
  const store = new JournalStore(join(folderOf(t), 'journals'))
  t.teardown(() => store.shutdown())
  return {
    append: (name, entries, options) => store.append(`agent/${name}`, entries, options),
    close: (name, tail) => store.close(`agent/${name}`, tail),
    interrupt: (name, tail) => store.interrupt(`agent/${name}`, tail),
    read: (name, after, options) => store.read(`agent/${name}`, after, options),
    stat: name => store.stat(`agent/${name}`),
    rewrite: (name, entries) => store.rewrite(`agent/${name}`, entries),
    rename: (name, to) => store.rename(`agent/${name}`, `agent/${to}`),
    remove: name => store.remove(`agent/${name}`),
    list: async prefix => (await store.list(`agent/${prefix}`)).map(name => name.slice('agent/'.length)),
    follow: (name, after) => ({ journal: `agent/${name}`, after }),
  }
}

/** A store in memory. */
export const memoryStore = (): Store => {
  const kept = new Map<string, string>()
  const texts = async (prefix = '') => [...kept].filter(([key]) => key.startsWith(prefix))
  return {
    get: async key => (kept.has(key) ? JSON.parse(kept.get(key)!) : undefined),
    set: async (key, value) => void kept.set(key, JSON.stringify(value)),
    delete: async key => void kept.delete(key),
    all: async prefix => (await texts(prefix)).map(([key, json]) => [key, JSON.parse(json)]),
    texts,
  }
}
