import { openStore } from '../../../kernel/storage/store.js'

/** A program that stores documents until it is killed, and prints which are stored. */
const store = openStore(process.argv[2] ?? '').of('agents')
for (let n = 0; ; n++) {
  await store.set(`k${n % 100}`, { n })
  await new Promise(done => process.stdout.write(`${n}\n`, done))
}
