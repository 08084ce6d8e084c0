import { mkdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Ledger } from '../../plugins/usage/ledger.js'
import { utcDayOf } from '../../plugins/usage/line.js'
import { UsageIndex } from '../../plugins/usage/usage-index.js'
import { JournalStore } from '../../sdk/node/journal/journal-store.js'
import { turnOf } from '../plugins/usage/support.js'

// Records turns, three at a time, until it is killed; prints which are acknowledged.
const [data = '', from = '0'] = process.argv.slice(2)
const folder = join(data, 'usage')
mkdirSync(folder, { recursive: true })
const store = new JournalStore(join(data, 'journals'))
const ledger = new Ledger({
  index: new UsageIndex(folder),
  journals: {
    append: (name, entries, options) => store.append(`usage/${name}`, entries, options),
    read: (name, after) => store.read(`usage/${name}`, after),
    stat: name => store.stat(`usage/${name}`),
    list: async prefix => (await store.list(`usage/${prefix}`)).map(name => name.slice('usage/'.length)),
  },
  log: { warn: console.error, error: console.error },
  added: () => {},
  recounted: () => {},
  most: 40,
})

let next = Number(from)
const write = async (): Promise<never> => {
  for (;;) {
    const n = next++
    const turn = turnOf({ run: `r-${n}` })
    await ledger.record({ ...turn, day: utcDayOf(turn.at), costUsd: 0.01, costFrom: 'reported' })
    // At once: what waits to be written would be lost with the process, and recorded again long after.
    writeSync(1, `${n}\n`)
  }
}
await Promise.all([write(), write(), write()])
