import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { NetworkNamespace } from '../../../../sdk/node/network/namespace.js'
import { walled } from '../../../attack/support.js'

/** The helper processes of this process. */
const helpers = (): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      try {
        const parent = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[1]
        return (
          Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('inside-child.js')
        )
      } catch {
        return false
      }
    })

t.test(
  'a helper process that does not answer is ended after a time, and the next one does its work',
  { ...walled(), timeout: 60_000 },
  async t => {
    const namespace = await NetworkNamespace.make()
    t.teardown(() => namespace.close())
    const [helper, ...others] = helpers()
    t.ok(helper)
    t.same(others, [])
    process.kill(helper!, 'SIGSTOP')
    await t.rejects(namespace.listen(3000), /the helper of the network ended with SIGKILL/)
    const server = await namespace.listen(3000)
    t.equal((server.address() as AddressInfo).port, 3000)
    const came = once(server, 'connection')
    const socket = await namespace.dial(3000)
    const [other] = (await came) as [typeof socket]
    socket.end('hello')
    let text = ''
    for await (const piece of other.setEncoding('utf8')) text += piece
    t.equal(text, 'hello')
    other.destroy()
    server.close()
  },
)
