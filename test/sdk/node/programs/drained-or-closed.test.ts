import { Writable } from 'node:stream'
import t from 'tap'
import { drainedOrClosed } from '../../../../sdk/node/programs/drained-or-closed.js'

t.test('waiting for a slow reader any number of times leaves no listener', async t => {
  const slow = () => new Writable({ highWaterMark: 1, write: (_piece, _encoding, over) => void setImmediate(over) })
  const out = slow()
  const before = out.eventNames().length
  for (let times = 0; times < 50; times++) {
    t.notOk(out.write('xx'))
    await drainedOrClosed(out)
  }
  t.equal(out.writableLength, 0, 'each wait ended once all was taken')
  t.equal(out.eventNames().length, before)
  out.destroy()
  await drainedOrClosed(out)
  const closing = slow()
  closing.write('xx')
  const waits = drainedOrClosed(closing)
  closing.destroy()
  await waits
  t.equal(closing.listenerCount('drain') + closing.listenerCount('close'), 0, 'nor does one that is closed meanwhile')
})
