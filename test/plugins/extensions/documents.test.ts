import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { derivedDocument, documentTypes } from '../../../plugins/extensions/backend/documents.js'
import type { Backends } from '../../../plugins/extensions/backend/runtime.js'
import { Refusal } from '../../../sdk/index.js'
import { ExtensionLink } from '../../../sdk/node/extension/link.js'
import type { BackendOperations, LinkMessage } from '../../../sdk/node/extension/protocol.js'
import { until } from '../../support/browser/browser.js'
import type { Support } from '../../support/daemon.js'
import { beginning, exactly } from '../../support/lists.js'
import {
  approvePending,
  daemonWithBackends,
  eraseExtension,
  listedUntil,
  recordNamed,
  writeExtension,
} from './support.js'

const ID = 'ada.plans'
const MANIFEST = {
  publisher: 'ada',
  name: 'plans',
  server: 'server.js',
  contributes: { documents: [{ id: 'plans', label: 'Plans', extensions: ['plan', 'docx'] }] },
}
/** Reads files of a format of its own: `PLAN`, a NUL, then what it does. */
const server = (version: string) => `
  let read = 0
  export const activate = host => {
    host.documents.handle('plans', ({ name, bytes }) => {
      read += 1
      const text = new TextDecoder().decode(bytes.subarray(5))
      if (text === 'throws') throw new Error('it has no\\u001b[31m walls')
      if (text === 'number') return { markdown: 7 }
      if (text === 'nothing') return undefined
      if (text === 'large') return { markdown: 'word '.repeat(1_000_000) }
      if (text === 'long') return { markdown: 'a word\\n'.repeat(200_000) }
      if (text === 'notes') return { markdown: 'x', notes: Array(21).fill('n') }
      if (text === 'ends') process.exit(3)
      return { markdown: '# ${version}\\n\\r\\n' + text + '\\0\\u001b[2J', title: name, notes: ['read ' + read] }
    })
  }`

const plan = (text: string): Buffer => Buffer.from(`PLAN\0${text}`)

const started = async (daemon: Support): Promise<void> => {
  await listedUntil(daemon, ({ extensions }) =>
    extensions.some(({ id, backend }) => id === ID && backend?.state === 'running'),
  )
}

t.test('an extension derives the text of files for viewers, search and diffs', async t => {
  const daemon = await daemonWithBackends(t, ['workspace', 'git', 'diffs'])
  const { client, workspace } = daemon
  const put = (path: string, bytes: Buffer | string) => writeFileSync(join(workspace, path), bytes)
  const derive = (path: string) => client.call('POST /workspace/derive', { path })
  const found = async (query: string, mode: 'q' | 'find') => {
    const { groups } = await client.call('GET /workspace/search', { query, mode })
    return groups.map(({ path, hits }) => ({ path, lines: hits.map(({ line, text }) => `${line}: ${text}`) }))
  }
  put('house.plan', plan('the kitchen has two windows'))
  put('text.plan', 'a plain text of a kitchen')
  writeExtension(daemon, 'plans', MANIFEST, { 'server.js': server('first') })

  await t.test('not before it is approved, and its power says what it reads', async t => {
    await listedUntil(daemon, ({ pending }) => pending.some(({ id }) => id === ID))
    t.match(await derive('house.plan'), { state: 'idle', derivable: false })
    const { powers } = await approvePending(daemon, ID)
    t.match(powers.join('\n'), /reads all files of the types plan, docx that are not text, and says what is in Plans/)
    await started(daemon)
    await until(async () => 'content' in (await derive('house.plan')))
  })

  await t.test('the text has no control characters, and is kept by the content', async t => {
    t.match(await client.call('GET /workspace/derived', { path: 'house.plan' }), {
      state: 'idle',
      content: '# first\n\nthe kitchen has two windows[2J',
      title: 'house.plan',
      notes: exactly('read 1'),
      deriver: `extension ${ID}`,
      truncated: false,
      stale: false,
    })
    put('copy.plan', plan('the kitchen has two windows'))
    t.match(await derive('copy.plan'), { notes: exactly('read 1'), title: 'house.plan' })
    t.match(await derive('text.plan'), { derivable: false }, 'a text is its own text')
    rmSync(join(workspace, 'copy.plan'))
  })

  await t.test('search finds what documents say, also new ones', async t => {
    put('garden.plan', plan('a pond\nand a kitchen garden'))
    await until(async () => (await found('KITCHEN', 'find')).length === 3)
    t.same((await found('kitchen', 'find')).map(({ path }) => path).sort(), ['garden.plan', 'house.plan', 'text.plan'])
    t.match(
      await found('kitchen gar.en', 'find'),
      exactly({ path: 'garden.plan', lines: exactly(/^4: and a kitchen/) }),
    )
    const plans = (await found('windows kitchen', 'q')).filter(({ path }) => path !== 'text.plan')
    t.match(plans, beginning({ path: 'house.plan', lines: exactly(/^3: the kitchen/) }, { path: 'garden.plan' }))
    t.match(await found('pond', 'q'), exactly({ path: 'garden.plan' }))
    t.match(await found('pond windows', 'find'), exactly())
    put('garden.plan', plan('a shed'))
    await until(async () => (await found('shed', 'find')).length === 1)
    t.same(await found('pond', 'find'), [], 'what it said before is not found')
  })

  await t.test('a diff shows both sides as text', async t => {
    const git = (...args: string[]) => execFileSync('git', ['-C', workspace, ...args])
    git('add', '-f', 'house.plan', 'text.plan')
    git('-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-qm', 'plans')
    put('house.plan', plan('the kitchen has three windows'))
    put('text.plan', 'another text')
    const where = { source: 'working', repo: 'root', side: 'unstaged' } as const
    const { documents, renderers } = await client.call('GET /diff/documents', where)
    t.match(
      documents,
      exactly({ path: 'garden.plan', before: false }, { path: 'house.plan', kind: 'document', renderable: true }),
    )
    t.match(renderers.at(-1), { format: 'plan', available: true })
    t.equal(renderers.filter(({ format }) => format === 'docx').length, 1)
    t.match(await client.call('GET /diff/rendered', { ...where, path: 'house.plan' }), {
      kind: 'document',
      before: { deriver: `extension ${ID}` },
      unified: /-the kitchen has two windows.*\n\+the kitchen has three windows/,
    })
  })

  await t.test('what it does wrong is the reason why a file has no text', async t => {
    for (const [text, reason] of [
      ['throws', /the extension ada\.plans could not read it: it has no\[31m walls$/],
      ['number', /answered markdown wrongly/],
      ['nothing', /could not read it/],
      ['large', /answered markdown wrongly|too large|more than/],
      ['notes', /answered notes wrongly/],
    ] as const) {
      put('wrong.plan', plan(text))
      t.match(await derive('wrong.plan'), { state: 'broken', derivable: true, reason }, text)
    }
    put('wrong.plan', plan('long'))
    const long = await derive('wrong.plan')
    t.match(long, { state: 'idle', truncated: true })
    t.ok('content' in long && Buffer.byteLength(long.content) <= 1024 * 1024)
    put('wrong.plan', Buffer.concat([plan(''), Buffer.alloc(21 * 1024 * 1024)]))
    t.match(await derive('wrong.plan'), { state: 'broken', reason: /at most 20 MiB/ })
    t.same(readdirSync(join(daemon.data, 'workspace/given')), [], 'no copy of a file is left')
    put('wrong.plan', plan('ends'))
    t.match(await derive('wrong.plan'), { state: 'broken', reason: /ended while it read it/ })
    rmSync(join(workspace, 'wrong.plan'))
    await started(daemon)
  })

  await t.test('its problems name what the sandbox reads itself', async t => {
    const { problems } = await recordNamed(daemon, ID)
    t.same(problems, ['the text of the file type docx is derived by the sandbox itself'])
  })

  await t.test('another version derives again, and nothing is derived while it is off', async t => {
    writeExtension(daemon, 'plans', MANIFEST, { 'server.js': server('second') })
    await until(async () => {
      const text = await client.call('POST /workspace/derive', { path: 'house.plan' })
      return 'content' in text && text.content.startsWith('# second')
    })
    await client.call('POST /extensions/{id}/enabled', { id: ID, enabled: false })
    t.match(await derive('house.plan'), { state: 'idle', derivable: false })
    t.same(
      (await found('kitchen', 'find')).map(({ path }) => path),
      [],
    )
    await client.call('POST /extensions/{id}/enabled', { id: ID, enabled: true })
    await started(daemon)
    await until(async () => (await found('kitchen', 'find')).length === 1)
    eraseExtension(daemon, 'plans')
    await listedUntil(daemon, ({ extensions }) => !extensions.some(({ id }) => id === ID))
    t.match(await client.call('GET /workspace/derived', { path: 'house.plan' }), { derivable: false })
  })
})

/** What asks a backend that takes messages and answers none. */
const unanswered = (folder: string, limitMs: number) => {
  const sent: LinkMessage[] = []
  const link = new ExtensionLink<BackendOperations>({
    send: message => sent.push(message),
    answer: async () => ({}),
    failure: () => ({ message: 'x' }),
  })
  const backend = { running: async () => ({ link }), isStopped: false }
  const deps = {
    backends: { of: () => backend, all: [] } as unknown as Backends,
    records: { refused: () => undefined },
    data: folder,
    limitMs,
  }
  return { sent, link, backend, deps }
}

t.test('a file is blamed for the end of a backend that crashed, not of one that was stopped', async t => {
  const folder = t.testdir({ 'file.plan': 'PLAN\0' })
  const asked = { extension: ID, document: 'plans', name: 'file.plan', file: join(folder, 'file.plan') }
  for (const isStopped of [false, true]) {
    const { sent, link, backend, deps } = unanswered(folder, 60_000)
    const answer = derivedDocument(deps, asked, new AbortController().signal)
    await until(async () => sent.length > 0)
    backend.isStopped = isStopped
    link.break(new Refusal('unavailable', 'the extension is not running: it was stopped'))
    t.match(await answer, { failed: /ended while it read it/, passing: isStopped })
  }
})

t.test('a file that cannot be opened fails its document alone', async t => {
  // The path of a socket has at most 107 bytes.
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'closed-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const socket = createServer().listen(join(folder, 'file.plan'))
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const { link, deps, sent } = unanswered(folder, 60_000)
  const asked = { extension: ID, document: 'plans', name: 'file.plan', file: join(folder, 'file.plan') }
  const answer = derivedDocument(deps, asked, new AbortController().signal)
  await until(async () => sent.length > 0)
  await delay(100)
  const [request] = sent
  const stream = (request as unknown as { input: { bytes: { stream: number } } }).input.bytes.stream
  link.receive({ kind: 'pull', stream })
  await until(async () => sent.length > 1)
  t.match(sent[1], { kind: 'next', stream, failure: { message: 'x' } })
  link.break(new Refusal('unavailable', 'it ended'))
  t.match(await answer, { failed: /ended while it read it/ })
})

t.test('a backend that does not answer is given up, and its bytes with it', async t => {
  const folder = t.testdir({ 'file.plan': 'PLAN\0' })
  const { sent, link, deps } = unanswered(folder, 2)
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const asked = { extension: ID, document: 'plans', name: 'file.plan', file: join(folder, 'file.plan') }
  for (let at = 0; at < 300; at++)
    t.match(await derivedDocument(deps, asked, new AbortController().signal), {
      failed: /did not read it within/,
      passing: false,
    })
  t.equal(link.asked, 0)
  t.same(new Set(sent.map(({ kind }) => kind)), new Set(['request', 'cancel']), 'no stream stays open')
  t.same(documentTypes(deps), [])
  await t.rejects(derivedDocument(deps, { ...asked, file: `${folder}/../secret` }, new AbortController().signal), {
    message: /expected a path in the data folder/,
  })
})
