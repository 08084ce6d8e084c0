import { writeSync } from 'node:fs'
import { JournalStore } from '../../../../sdk/node/journal/journal-store.js'

/** A program that appends to a journal until it is killed, and prints what was acknowledged. */
const [folder = '', name = '', size = '0', stopAtError] = process.argv.slice(2)
const store = new JournalStore(folder)
const text = 'x'.repeat(Number(size))

const appending = async (lane: number): Promise<void> => {
  for (let n = 0; ; n++) {
    try {
      const position = await store.append(name, [{ lane, n, text }], { flush: lane === 0 })
      writeSync(1, `${JSON.stringify({ position, lane, n })}\n`)
    } catch (error) {
      writeSync(1, `${JSON.stringify({ error: (error as Error).message, ...(await store.stat(name)) })}\n`)
      if (stopAtError) return
    }
    if (n % 10 === lane) await new Promise(resolve => setImmediate(resolve))
  }
}

await Promise.all([0, 1, 2].map(appending))
await store.append(name, ['after'])
writeSync(1, `${JSON.stringify({ after: true })}\n`)
