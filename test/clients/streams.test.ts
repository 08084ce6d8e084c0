import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { daemonWith, type Support } from '../support/daemon.js'
import { misfits, OPERATIONS } from '../support/schema.js'

/**
 * Follows a stream as any client of server-sent events would, each event held to the document; answers their types at
 * its end.
 */
const follow = async (
  t: Test,
  daemon: Support,
  call: string,
  path: string,
  headers: { [name: string]: string },
  heard: () => unknown,
): Promise<string[]> => {
  const { schema } = OPERATIONS.find(operation => operation.call === call)!.responses[200]!.content![
    'text/event-stream'
  ]!
  const answer = await fetch(daemon.url + path, { headers })
  t.equal(answer.status, 200)
  const seen: string[] = []
  let text = ''
  for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + part).split('\n\n')
    text = blocks.pop()!
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
      const [event, id, data] = [field('event'), field('id'), field('data')]
      if (!event || !data) continue
      t.same(misfits(schema, { event, ...(id && { id }), data: JSON.parse(data) }), [], `${call} ${event}`)
      if (seen.push(event) === 1) heard()
    }
  }
  return seen
}

t.test('the events of a stream are as the document says, to the failure or the end that closes it', async t => {
  const daemon = await daemonWith(t, ['system', 'agent', 'agents', 'settings', 'logs'])
  const { token, id } = await daemon.token('read')
  const cut = await follow(
    t,
    daemon,
    'GET /events',
    '/events',
    { 'x-sandbox-control': token },
    () => void daemon.client.call('DELETE /system/control/tokens/{id}', { id }),
  )
  t.equal(cut.at(-1), 'error', 'a token that was revoked')

  const log = join(daemon.data, 'logs', 'daemon.log')
  mkdirSync(join(daemon.data, 'logs'), { recursive: true })
  writeFileSync(log, '{"level":30,"msg":"one"}\n')
  const signedIn = { authorization: `Bearer ${daemon.session}` }
  const removed = await follow(t, daemon, 'GET /logs/follow', '/logs/follow?name=daemon.log', signedIn, () =>
    rmSync(log),
  )
  t.equal(removed.at(-1), 'done', 'a log that was removed')

  let stopped: Promise<unknown> | undefined
  const ended = await follow(t, daemon, 'GET /events', '/events?clientId=a', signedIn, () => (stopped = daemon.stop()))
  await stopped
  t.equal(ended.at(-1), 'done', 'a daemon that stops')
})
