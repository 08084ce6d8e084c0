import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refuse } from '../../../sdk/index.js'
import { inGit } from '../../support/daemon.js'
import { tookLess } from '../../support/in-time.js'
import { spread } from '../../support/lists.js'
import { envelope, eventId, failure, issuesOf, newReporter, send } from '../../plugins/issues/support.js'
import { outboxWith } from '../../plugins/outbox/support.js'
import { someOf, spoiled } from './hostile-answers.js'
import { HOSTILE_TEXTS, UNSHOWN } from './hostile-texts.js'

t.setTimeout(240_000)

const CANARY = 'canary-of-a-file-that-no-report-may-show'

/** An event with every part that is read. */
const whole = () => ({
  event_id: eventId(),
  ...{ platform: 'node', level: 'error', timestamp: 1_800_000_000, release: '1', environment: 'p', transaction: 't' },
  ...{ server_name: 's', logger: 'l', culprit: 'c', fingerprint: ['{{ default }}', 'f'] },
  logentry: { formatted: 'a', message: 'b', params: [1] },
  exception: {
    values: [
      {
        ...{ type: 'E', value: 'v', module: 'm', mechanism: { handled: false } },
        stacktrace: {
          frames: [
            {
              ...{
                filename: 'app.js',
                abs_path: '/app.js',
                module: 'm',
                function: 'f',
                lineno: 1,
                colno: 1,
                in_app: true,
              },
              ...{ pre_context: ['a'], context_line: 'b', post_context: ['c'], vars: { password: 'x' } },
            },
          ],
        },
      },
    ],
  },
  breadcrumbs: { values: [{ timestamp: 1_800_000_000, category: 'c', level: 'info', message: 'm', data: { a: 1 } }] },
  tags: { a: 'b' },
  user: { id: 1, email: 'a@b.example', username: 'u', ip_address: '{{auto}}' },
  request: { url: 'https://a.example/', headers: { 'User-Agent': 'x' }, data: { a: 1 }, cookies: 'a=b' },
  contexts: { browser: { name: 'b', version: '1' }, os: { name: 'o' }, runtime: { name: 'r' }, device: { model: 'd' } },
  extra: { a: { b: 1 } },
  sdk: { name: 's', version: '1' },
})

/** Names of files that lead out of the repository of a reporter, or to what is closed in it. */
const NAMES = [
  ...[
    '../secret.txt',
    '/../secret.txt',
    'a/../../secret.txt',
    '..\\secret.txt',
    '%2e%2e/secret.txt',
    './/..//secret.txt',
  ],
  ...['.env', 'app/.env', '.ENV', '.env.', '.git/config', '.GIT/config', 'git~1/config', '.sandbox/config/a.json'],
  ...['link.js', 'linked/secret.txt', 'linked/../../secret.txt', 'app.js/../link.js', 'key.pem', 'id_rsa'],
  ...['webpack://app/../secret.txt', 'file:///etc/passwd', '/etc/passwd', '~/secret.txt', 'app:///../secret.txt'],
  ...[
    'https://a.example/../secret.txt',
    'https://a.example/%2e%2e/secret.txt',
    'https://a.example/link.js',
    '//secret.txt',
  ],
  ...['\0secret.txt', 'secret.txt\0.js', '__proto__', 'constructor', ...HOSTILE_TEXTS.map(text => text.toWellFormed())],
]

/** What a source map beside a built file leads to. */
const MAPS: readonly string[] = [
  ...NAMES.map(name => JSON.stringify({ version: 3, sources: [`../${name}`], names: ['n'], mappings: 'AAAA,aAEEA' })),
  ...NAMES.map(name => JSON.stringify({ version: 3, sources: [name], sourceRoot: '..', names: [], mappings: 'AAAA' })),
  JSON.stringify({ version: 3, sections: Array(2000).fill({ offset: { line: 0, column: 0 }, url: '../secret.txt' }) }),
  `${'{"version":3,"sections":[{"offset":{"line":0,"column":0},"map":'.repeat(3000)}1${'}]}'.repeat(3000)}`,
  JSON.stringify({ version: 3, sources: [null, 1, {}], names: [null], mappings: 'A'.repeat(1_000_000) }),
  JSON.stringify({ version: 3, sources: ['a'], names: [], mappings: ';'.repeat(2_000_000) }),
  JSON.stringify({ version: 3, sources: ['a'], names: [], mappings: 'ggggggggggggB' }),
  ...['null', '[]', '{', '"x"', ")]}'\n{}", '{"version":3}'],
]

t.test('what a report says is read, or refused in words, and shows nothing of what is closed', async t => {
  const started: { prompt: string }[] = []
  const daemon = await outboxWith(t, ['issues', 'secrets', 'activity'], {
    files: {
      'secret.txt': CANARY,
      'site/.env': CANARY,
      'site/app.js': '1\n2\n',
      'site/app/.env': CANARY,
      'site/key.pem': CANARY,
    },
    fakes: {
      'agent.start': input => {
        started.push(input as { prompt: string })
        return refuse('unavailable', 'no turn is started here')
      },
      'agent.conversation': () => refuse('not-found', 'there is no conversation here'),
      'automations.dispatch': () => ({ matched: [] }) as never,
    },
  })
  const { client, workspace, url } = daemon
  const site = join(workspace, 'site')
  inGit(site, 'init', '-q')
  inGit(site, 'config', 'x.canary', CANARY)
  symlinkSync('../secret.txt', join(site, 'link.js'))
  symlinkSync('..', join(site, 'linked'))
  writeFileSync(join(site, 'id_rsa'), CANARY)
  /** The raw answer, as a client gets it. */
  const detail = async (id: string) => {
    const answer = await fetch(`${url}/issues/${id}`, { headers: { authorization: `Bearer ${daemon.session}` } })
    return { status: answer.status, text: await answer.text() }
  }
  /** Sends events, each to an issue of its own, and looks at every issue. */
  const reported = async (t: Tap, events: readonly string[]) => {
    const reporter = await newReporter(client, { repo: 'site', dailyMax: 100_000 })
    let slowest = 0
    for (const event of events) {
      const began = performance.now()
      const { status } = await send(daemon, reporter, envelope([['event', event]]))
      slowest = Math.max(slowest, performance.now() - began)
      t.ok([200, 400, 413].includes(status), `it is answered with ${status}`)
      // Fifty a second are taken.
      await new Promise(resolve => setTimeout(resolve, 25))
    }
    t.ok(tookLess(slowest, 3_000), `${Math.round(slowest)} ms`)
    const issues = await issuesOf(client, reporter)
    t.ok(issues.length > 0, `${issues.length} issues`)
    for (const { id, level, title } of issues) {
      t.type(level, 'string')
      t.equal(UNSHOWN.exec(title)?.[0], undefined, 'its title has no control characters')
      const { status, text } = await detail(id).catch((error: Error) => ({
        status: 0,
        text: String(error.cause ?? error),
      }))
      t.equal(status, 200, id)
      t.notOk(text.includes(CANARY), 'it shows nothing of what is closed')
    }
    return issues
  }

  await t.test('in every part of an event', async t => {
    const all = [...spoiled(whole())].map((text, at) => {
      // A deep value spoils only its own event; the id keeps them apart.
      const id = eventId()
      return text.startsWith('{"event_id":')
        ? text.replace(/^\{"event_id":"[0-9a-f]{32}"/, `{"event_id":"${id}","dist":"${at}"`)
        : text
    })
    await reported(t, someOf(all, 80))
  })

  await t.test('in every name of a file, also as an agent gets it', async t => {
    const issues = await reported(
      t,
      NAMES.map((filename, at) => JSON.stringify(failure(`E${at}`, { filename, abs_path: filename, lineno: 1 }))),
    )
    for (const { id } of spread(issues, 12)) await client.call('POST /issues/{id}/fix', { id }).catch(() => undefined)
    t.ok(started.length > 0)
    t.notOk(started.some(({ prompt }) => prompt.includes(CANARY)))
  })

  await t.test('in every source map', async t => {
    mkdirSync(join(site, 'dist'), { recursive: true })
    const maps = spread(MAPS, 40)
    for (const [at, map] of maps.entries()) {
      writeFileSync(join(site, 'dist', `b${at}.js`), 'x\n')
      writeFileSync(join(site, 'dist', `b${at}.js.map`), map)
    }
    await reported(
      t,
      maps.map((_, at) =>
        JSON.stringify(failure(`M${at}`, { filename: `https://a.example/b${at}.js`, lineno: 1, colno: 14 })),
      ),
    )
  })

  await t.test('in the envelope itself', async t => {
    const reporter = await newReporter(client)
    const event = JSON.stringify(failure('Error'))
    for (const body of [
      `{}\n{"type":"event","length":-1}\n${event}\n`,
      `{}\n{"type":"event","length":1e308}\n${event}\n`,
      `{}\n{"type":"event","length":"9"}\n${event}\n`,
      `{}\n{"type":"event","length":${event.length + 10}}\n${event}\n`,
      `{}\n{"type":"event","length":5}\n${event}\n`,
      `{}\n{"type":"__proto__"}\n${event}\n`,
      `{}\n{"type":["event"]}\n${event}\n`,
      `{"dsn":"http://a@b/1","__proto__":{"x":1}}\n{"type":"event"}\n${event}\n`,
      '\n'.repeat(100_000),
      `{}\n${'{"type":"event","length":0}\n\n'.repeat(30)}`,
      `\ufeff{}\n{"type":"event"}\n${event}`,
      `{}\r\n{"type":"event"}\r\n${event}\r\n`,
      '\0'.repeat(1000),
    ]) {
      const { status } = await send(daemon, reporter, body)
      t.ok([200, 400, 413].includes(status), `it is answered with ${status}`)
    }
    t.equal((await fetch(`${url}/health`)).status, 200)
  })
})

type Tap = Pick<typeof t, 'ok' | 'notOk' | 'equal' | 'type'>
