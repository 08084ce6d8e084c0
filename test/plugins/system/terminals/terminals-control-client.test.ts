import { EventEmitter, once } from 'node:events'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { ControlClient } from '../../../../plugins/system/terminals/control-client.js'

/** A client whose program is the test: its input, and a function that sends output. */
const clientOf = () => {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const child = Object.assign(new EventEmitter(), { stdin, stdout, stderr, kill: () => true })
  const heard: string[] = []
  const client = new ControlClient(
    child,
    {
      output: bytes => heard.push(bytes.toString()),
      notified: line => line.startsWith('%session') && heard.push(line),
      ended: () => heard.push('ended'),
    },
    () => undefined,
  )
  const given = () => String(stdin.read() ?? '')
  /** Sends lines, and waits until they are read. */
  const says = async (...lines: string[]) => {
    stdout.write(lines.map(line => `${line}\n`).join(''))
    // A loaded machine may need some iterations to pass them on.
    for (let round = 0; round < 5; round++) await new Promise(setImmediate)
  }
  return { client, child, heard, given, says }
}

const ATTACHED = ['%begin 7 1 0', '%end 7 1 0', '%session-changed $0 web-a']

t.test('commands are sent to tmux only after it has attached the client, then all at once', async t => {
  const { client, given, says, heard } = clientOf()
  client.run(['capture-pane'], blocks => heard.push(`shown: ${String(blocks)}`))
  client.run(['send-keys'], () => heard.push('typed'))
  await says('%begin 7 1 0', '%end 7 1 0')
  t.equal(given(), '')
  await says('%session-changed $0 web-a')
  t.equal(given(), 'capture-pane\nsend-keys\n')
  await says('%begin 7 2 1', 'a screen', '%end 7 2 1', '%begin 7 3 1', '%end 7 3 1', '%output %0 more')
  t.same(heard, ['%session-changed $0 web-a', 'shown: a screen', 'typed', 'more'])
  client.run(['send-keys'], () => {})
  t.equal(given(), 'send-keys\n')
  client.close()
})

t.test(
  'a client that is paused before it is attached is still attached and runs its commands, then stops reading',
  async t => {
    const { client, child, given, says } = clientOf()
    client.pause()
    client.run(['send-keys'], () => {})
    await says(...ATTACHED)
    t.equal(given(), 'send-keys\n')
    // It reads again from time to time, and pauses again.
    const paused = once(child.stdout, 'pause')
    await says('%output %0 a')
    await paused
    client.close()
  },
)

t.test('the commands of a client that could not be attached fail', async t => {
  const { client, child, given, says } = clientOf()
  const failed = Promise.withResolvers<string>()
  client.run(['capture-pane'], blocks => failed.resolve(String(blocks)))
  await says('%begin 7 1 0', "can't find session: web-a", '%error 7 1 0', '%exit')
  child.emit('close')
  t.equal(await failed.promise, 'Error: tmux is gone')
  t.equal(given(), '')
})
