import t from 'tap'
import { fakeDaemon } from '../cli-process.js'
import { json, streaming, wire } from '../../wire.js'

const LINE = {
  level: 'warn',
  at: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
  pid: 7,
  group: 'agents',
  id: 'c\u001b[2J',
  message: 'slow\nby far',
}
const ERROR = { level: 'error', at: LINE.at, pid: 7, err: { stack: 'Error: broken\n    at x' }, message: 'failed' }

t.test('logs lists the logs, and shows the end of one', async t => {
  const asked: string[] = []
  const daemon = await fakeDaemon(t, ({ path, query }, response) => {
    asked.push(`${path}?${query}`)
    if (path === '/logs')
      return json(response, 200, {
        files: query.get('query')
          ? []
          : [{ name: 'daemon.log', kind: 'daemon', sizeBytes: 5_000_000, modifiedAt: Date.now(), live: true }],
      })
    const next = query.get('find') && !query.has('offset') ? { next: 9 } : {}
    return json(response, 200, {
      name: 'daemon.log',
      sizeBytes: 1,
      offset: 0,
      truncated: false,
      text: `${JSON.stringify(LINE)}\nplain \u001b[31mwords\n${JSON.stringify(ERROR)}\n`,
      ...next,
    })
  })
  t.match(
    (await daemon.run(['logs'])).out,
    /^NAME +KIND +SIZE +CHANGED\ndaemon\.log +daemon +4\.8 MiB +now, being written\n$/,
  )
  t.equal((await daemon.run(['logs', '--find', 'zz'])).out, 'there are no logs\n')
  t.same((await daemon.run(['logs', 'daemon.log'])).out.split('\n'), [
    '03:04:05.006 warn  agents slow\\nby far id=c\\u001b[2J',
    'plain \\u001b[31mwords',
    '03:04:05.006 error failed',
    '  Error: broken',
    '      at x',
    '',
  ])
  asked.length = 0
  await daemon.run(['logs', 'daemon.log', '--level', 'warn', '--find', 'a b'])
  t.same(
    asked,
    ['/logs/file?name=daemon.log&find=a+b&level=warn', '/logs/file?name=daemon.log&find=a+b&level=warn&offset=9'],
    'until nothing is left',
  )
  t.equal((await daemon.run(['logs', 'daemon.log', '--level', 'loud'])).code, 2)
  t.equal((await daemon.run(['logs', '-f'])).code, 2)
})

t.test('logs -f follows, and resumes an interrupted stream', async t => {
  const seen: (string | undefined)[] = []
  const daemon = await fakeDaemon(t, ({ headers }, response) => {
    const last = headers['last-event-id'] as string | undefined
    seen.push(last)
    streaming(response).write('retry: 1\n\n')
    if (last === undefined) {
      response.write(
        wire('message', { offset: 0, text: 'one' }, '4') + wire('message', { kind: 'skipped', lines: 3 }, '4'),
        () => setImmediate(() => response.destroy()),
      )
      return undefined
    }
    return void response.end(
      wire('message', { kind: 'rotated' }, '0')
        + wire('message', { offset: 0, text: 'two' }, '4')
        + wire('done', { reason: 'removed' }),
    )
  })
  t.same((await daemon.run(['logs', 'daemon.log', '-f'])).out.split('\n'), [
    'one',
    'skipped 3 lines that came too fast',
    'two',
    '',
  ])
  t.same(seen, [undefined, '4'])
})
