import { closeSync, existsSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { placeWith } from '../work/git-place.js'
import { answersOf, bytesOf, shellTurn, walled } from '../support.js'

const OWN = '"$(git rev-parse --git-dir)"'

/** A FIFO in place of a git file: opening it blocks forever. */
const PIPES: { readonly [conversation: string]: string } = {
  'in-branch': `cd ${OWN}/refs/heads/agent && rm -f in-branch && mkfifo in-branch`,
  'in-head': `cd ${OWN} && rm -f HEAD && mkfifo HEAD`,
  'in-index': `cd ${OWN} && rm -f index && mkfifo index`,
  'in-logs':
    `cd ${OWN}/logs && rm -f HEAD && mkfifo HEAD && mkdir -p refs/heads/agent && cd refs/heads/agent && `
    + 'rm -f in-logs && mkfifo in-logs',
  'in-other':
    `cd ${OWN} && mkdir -p logs/refs/heads/agent && mkfifo refs/heads/agent/next-other `
    + 'logs/refs/heads/agent/next-other',
  'in-pointer': 'mkdir p && mkfifo p/.git',
}

/** Every call is answered long before the time limit of a blocked read. */
const SOON = 15_000

const soon = async <T>(what: string, work: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>(
    (_, reject) => (timer = setTimeout(() => reject(new Error(`${what} was blocked`)), SOON)),
  )
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

t.test('a FIFO in place of a git file blocks nothing', walled(), async t => {
  const here = await placeWith(t)
  const { client } = here
  await runTurn(client, 'bystander', 'write src/b.txt\n| two', { isolated: true })
  for (const [id, command] of Object.entries(PIPES)) {
    const [, told] = await shellTurn(client, id, [`echo ${id} > src/${id}.txt`, `${command} && echo MADE`], {
      isolated: true,
    })
    t.match(told, 'MADE', id)
  }
  t.equal((await soon('the roster', client.call('GET /agents'))).agents.length, Object.keys(PIPES).length + 1)
  for (const id of Object.keys(PIPES)) {
    await soon(
      `the diff of ${id}`,
      client.call('GET /agents/{id}/diff', { id }).catch(() => {}),
    )
    await soon(
      `the landing of ${id}`,
      client.call('POST /agents/{id}/land', { id }).catch(() => {}),
    )
    t.ok(
      (await soon(`the next turn of ${id}`, runTurn(client, id, 'say again'))).some(({ kind }) => kind === 'done'),
      id,
    )
    t.ok(
      (
        await soon(
          `a new conversation after ${id}`,
          runTurn(client, id.replace('in-', 'next-'), 'run git log -1', { isolated: true }),
        )
      ).length > 0,
    )
  }
  t.match(await soon('the landing of a bystander', client.call('POST /agents/{id}/land', { id: 'bystander' })), {
    landed: true,
  })
  for (const id of Object.keys(PIPES)) await soon(`discarding ${id}`, client.call('POST /agents/{id}/discard', { id }))
  t.equal((await client.call('GET /agents')).agents.filter(({ id }) => id.startsWith('in-')).length, 0)
})

t.test('a link in place of a git file is never followed by a write', walled(), async t => {
  const here = await placeWith(t)
  const { client, wire, data, workspace } = here
  const key = () => bytesOf(data, /^(?!machine\.key$)/)
  const before = key()
  // These files can be written only outside the wall; others would prove nothing.
  const targets = [`${data}/machine.key`, `${data}/tripped/made`]
  for (const [at, target] of targets.entries()) {
    const id = `links-${at}`
    const link = (place: string) => `rm -rf ${place}; ln -s ${target} ${place}`
    await shellTurn(
      client,
      id,
      [
        'echo x > src/x.txt',
        `cd ${OWN}/logs && mkdir -p refs/heads/agent && cd refs/heads/agent && ${link(`after-${at}`)}; ${link(id)}`,
        `cd ${OWN}/refs/heads/agent && ${link(`after-${at}`)}; ${link(`before-${at}`)}`,
        `cd ${OWN} && ${link('logs/HEAD')}; ${link('ORIG_HEAD')}; ${link('index')}; ${link('COMMIT_EDITMSG')}`,
      ],
      { isolated: true },
    )
    await client.call('GET /agents/{id}/diff', { id }).catch(() => {})
    await client.call('POST /agents/{id}/land', { id }).catch(() => {})
    await runTurn(client, id, 'say again')
    await runTurn(client, `after-${at}`, 'write y.txt\n| y', { isolated: true })
    await runTurn(client, `before-${at}`, 'write y.txt\n| y', { isolated: true })
    for (const each of [id, `after-${at}`, `before-${at}`]) await client.call('POST /agents/{id}/discard', { id: each })
  }
  t.same(key(), before)
  t.same(wire.tripped(), [])
  symlinkSync(join(data, 'tripped/made'), join(workspace, 'way'))
  writeFileSync(join(workspace, 'way'), 'through')
  t.same(wire.tripped(), ['made'], 'a write without a wall follows the link')
})

t.test('FIFOs in the shared git folder block only calls that need git', walled(), async t => {
  const here = await placeWith(t)
  const { client, common } = here
  await runTurn(client, 'c-1', 'write src/b.txt\n| two', { isolated: true })
  const places = ['HEAD', 'index', 'packed-refs', 'MERGE_HEAD', 'info/exclude', 'refs/heads/main']
  await shellTurn(client, 'shared', [
    ...places.map(each => `rm -f .git/${each}; mkfifo .git/${each}`),
    'rm README.md && mkfifo README.md',
  ])
  t.teardown(() => {
    // A reader blocked at a FIFO continues once it is opened for reading and writing.
    const open = places.filter(each => existsSync(join(common, each))).map(each => openSync(join(common, each), 'r+'))
    for (const each of places) rmSync(join(common, each), { force: true })
    for (const file of open) closeSync(file)
  })
  t.equal((await soon('the roster', client.call('GET /agents'))).agents.length, 2)
  t.match(
    answersOf(await soon('a turn in the shared tree', runTurn(client, 'shared', 'read README.md\nread src/a.txt'))),
    exactly({ ok: false }, { ok: true, text: 'one' }),
  )
  t.ok((await soon('the transcript', client.call('GET /agents/{id}/transcript', { id: 'c-1' }))).total > 0)
})
