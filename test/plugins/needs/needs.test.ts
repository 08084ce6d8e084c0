import t, { type Test } from 'tap'
import type { Need, NeedInput, NeedsCalls } from '../../../plugins/needs/contract.js'
import type { Input } from '../../../sdk/contract.js'
import { createClient } from '../../../sdk/client.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { add } from '../capabilities/support.js'
import { filesWith } from '../secrets/support.js'
import { programFile } from '../../../sdk/node/programs/package.js'

const AS = {
  caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
  signal: new AbortController().signal,
  trusted: false,
} as const
const VALUE = 'tr0ub4dor&3-and-more'

/** A daemon with what needs speak of; `cas` is a collaborator, `vic` a viewer, `ada` has one area. */
const needsWith = async (t: Test): Promise<Support> => {
  const people = new People()
  people.add('cas@example.org', 'collaborator')
  people.add('vic@example.org', 'viewer')
  people.add('ada@example.org', 'collaborator', ['site'])
  const groups = ['needs', 'agent', 'agents', 'secrets', 'capabilities', 'activity']
  const daemon = await daemonWith(t, groups, {
    fakes: { ...people.fakes, 'areas.reach': () => ({ folders: [{ path: 'site', access: 'work' }] }) },
    files: { 'site/index.html': 'hello\n', 'notes.txt': 'a note\n' },
  })
  people.admit(daemon)
  return daemon
}

t.test('needs', async t => {
  const daemon = await needsWith(t)
  const { client, workspace } = daemon
  const cas = clientOf(daemon, 'cas@example.org')
  let last = 0
  /** A conversation with one settled turn. */
  const conversation = async (options: object = {}): Promise<string> => {
    const id = `c${++last}`
    await runTurn(client, id, 'say ready', options)
    return id
  }
  const ask = (conversationId: string, more: Partial<NeedInput> = {}) =>
    cas.call('POST /needs', {
      conversationId,
      kind: 'information',
      title: 'Which region?',
      why: 'It is asked.',
      ...more,
    })
  const give = (id: string, more: Partial<Input<NeedsCalls, 'POST /needs/{id}/give'>> = {}) =>
    cas.call('POST /needs/{id}/give', { id, answers: { answer: 'eu-west-1' }, ...more })
  const read = (id: string) => client.call('GET /needs/{id}', { id })
  /** The messages of people and of the sandbox in a conversation. */
  const said = async (id: string): Promise<string[]> =>
    (await client.call('GET /agents/{id}/transcript', { id })).messages.flatMap(message =>
      message.role === 'user' ? [message.text] : [],
    )
  const ended = async (id: string, run: string) => framesOf(client, id, { run }).all()

  await t.test('without a credential and with too little of one nothing is asked or given', async t => {
    const { id } = await ask(await conversation())
    const calls = [
      ['GET', '/needs', undefined],
      ['GET', `/needs/${id}`, undefined],
      ['POST', '/needs', { conversationId: 'c1', kind: 'hands', title: 'Press it', why: 'It is off.' }],
      ['POST', `/needs/${id}/give`, {}],
      ['POST', `/needs/${id}/decline`, {}],
    ] as const
    const editor = await daemon.token('editor')
    const reader = await daemon.token('read')
    for (const [method, path, body] of calls) {
      const send = async (headers: { [name: string]: string }) => {
        const type = body ? { 'content-type': 'application/json', ...headers } : headers
        const sent = { method, headers: type, ...(body && { body: JSON.stringify(body) }) }
        return (await fetch(daemon.url + path, sent)).status
      }
      t.equal(await send({}), 401, `${method} ${path}`)
      t.equal(await send({ 'x-sandbox-control': editor.token }), 403, `${method} ${path} with an editor token`)
      if (method === 'GET') continue
      t.equal(await send({ 'x-sandbox-control': reader.token }), 403, `${method} ${path} with a read token`)
      t.equal(await send({ authorization: 'Bearer vic@example.org' }), 403, `${method} ${path} as a viewer`)
    }
    const shown = await clientOf(daemon, 'vic@example.org').call('GET /needs/{id}', { id })
    t.same(shown.allowed, { give: false, reason: 'it takes a collaborator' })
    await cas.call('POST /needs/{id}/decline', { id })
  })

  await t.test('an agent asks and ends its turn; the answer begins the next one', async t => {
    const frames = await runTurn(client, 'asks', 'need information Which region?\n| It is asked.\nsay waiting')
    const [{ id, title, raisedBy, run, fields, allowed }] = (
      await client.call('GET /needs', { conversationId: 'asks' })
    ).needs as [Need]
    t.match(
      { title, raisedBy, allowed },
      { title: 'Which region?', raisedBy: 'conversation:asks', allowed: { give: true } },
    )
    t.match(fields, exactly({ key: 'answer', type: 'text', required: true }))
    t.match(
      frames.find(({ kind }) => kind === 'need'),
      { id, title, status: 'open' },
    )
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    const agent = (await client.call('GET /agents')).agents.find(each => each.id === 'asks')
    t.equal(agent?.run === undefined || agent.run === run, true, 'nothing runs')
    const given = await give(id, { note: 'As always.' })
    await ended('asks', given.run!)
    t.match(given.need, { status: 'given', settledBy: 'cas@example.org', answers: { answer: 'eu-west-1' } })
    t.equal((await read(id)).continued, given.run)
    t.match((await said('asks')).at(-1), /Which region\?: was given\nAnswer: eu-west-1\nNote: As always\./)
    t.same((await give(id)).run, given.run, 'the same answer again is answered as the first time')
    t.match(await refusalOf(() => give(id, { answers: { answer: 'us-east-1' } })), {
      status: 409,
      message: /given already/,
    })
    t.equal((await said('asks')).length, 2)
  })

  await t.test('an external agent goes on too', async t => {
    const id = await conversation({ harness: 'vendor-code' })
    const { run } = await give((await ask(id)).id)
    await ended(id, run!)
    t.match((await said(id)).at(-1), /eu-west-1/)
  })

  await t.test('a conversation goes on once nothing that it waits for is open, and learns the rest later', async t => {
    const id = await conversation()
    const [one, two, aside] = [
      await ask(id, { title: 'One' }),
      await ask(id, { title: 'Two', kind: 'hands' }),
      await ask(id, { title: 'Aside', blocking: false }),
    ]
    t.equal((await give(one.id)).run, undefined)
    t.equal((await said(id)).length, 1)
    await give(aside.id)
    t.equal((await said(id)).length, 1, 'nothing waits for the third')
    const { run } = await give(two.id, { answers: {} })
    const frames = await ended(id, run!)
    t.match((await said(id)).at(-1), /One: was given\nAnswer: eu-west-1\n\nTwo: was given/)
    const notes = frames.flatMap(({ event }) => (event.kind === 'preamble' ? event.notes : []))
    t.match(notes, exactly({ title: 'Answer to a need', text: /^Aside: was given/ }))
    t.notMatch(JSON.stringify(await runTurn(client, id, 'say more')), /Answer to a need/, 'once')
  })

  await t.test('what is declined or too late is told with its reason, and what is taken back is not', async t => {
    const id = await conversation({ isolated: true })
    const { run } = await cas.call('POST /needs/{id}/decline', { id: (await ask(id)).id, reason: 'Nobody decided.' })
    await ended(id, run!)
    t.match((await said(id)).at(-1), /Which region\?: will not be given\nReason: Nobody decided\./)
    const late = await ask(id, { expiresAt: Date.now() + 300 })
    const frames = framesOf(client, id)
    await until(async () => (await read(late.id)).continued !== undefined)
    await frames.all()
    t.match(await read(late.id), { status: 'expired', settledBy: 'sandbox:clock' })
    t.match((await said(id)).at(-1), /was not given in time/)
    const quiet = await ask(id)
    t.equal((await give(quiet.id, { continue: false })).run, undefined)
    const [told] = (await runTurn(client, id, 'say next')).flatMap(frame =>
      frame.kind === 'preamble' ? frame.notes : [],
    )
    t.match(told, { title: 'Answer to a need', text: /^Which region\?: was given/ })
    const gone = await ask(id)
    await client.call('POST /agents/{id}/discard', { id })
    await until(async () => (await read(gone.id)).status === 'withdrawn')
    t.match(await refusalOf(() => give(gone.id)), { status: 409 })
  })

  await t.test('a secret is stored by a maintainer alone, and is nowhere in clear', async t => {
    const id = await conversation()
    const secret = {
      key: 'token',
      label: 'The token',
      type: 'secret',
      required: true,
      secretKey: 'DEPLOY_TOKEN',
    } as const
    const need = await ask(id, { kind: 'secret', title: 'A token', fields: [secret] })
    t.same(need.allowed, { give: false, reason: 'only a maintainer may store secrets' })
    const answers = { token: VALUE }
    t.match(await refusalOf(() => give(need.id, { answers })), { status: 403 })
    const drive = createClient({ url: daemon.url, token: (await daemon.token('drive')).token })
    t.match(await refusalOf(() => drive.call('POST /needs/{id}/give', { id: need.id, answers })), { status: 403 })
    const owner = (more: object = {}) => client.call('POST /needs/{id}/give', { id: need.id, answers, ...more })
    const { run, need: given } = await owner()
    t.same(given.answers, { token: '{{secret:DEPLOY_TOKEN}}' })
    await ended(id, run!)
    t.match((await said(id)).at(-1), /The token: \{\{secret:DEPLOY_TOKEN\}\}/)
    t.equal((await owner()).run, run)
    t.match(await refusalOf(() => owner({ answers: { token: 'another one' } })), { status: 409 })
    const frames = await runTurn(client, id, "run test {{secret:DEPLOY_TOKEN}} = 'tr0ub4dor&3-and-more' && echo same")
    t.match(JSON.stringify(frames), /same/, 'a shell of the turn has it by its reference')
    t.same(filesWith(daemon.data, VALUE), [])
    t.same(filesWith(workspace, VALUE), [])
  })

  await t.test('a turn that asks with its own credential cannot give it', async t => {
    const conversationId = await conversation()
    const { token } = await daemon.auth.handlers['kernel.turn.mint']({ conversationId }, AS)
    const asked = await fetch(`${daemon.url}/needs`, {
      method: 'POST',
      headers: { 'x-sandbox-turn': token, 'content-type': 'application/json' },
      body: JSON.stringify({ conversationId, kind: 'hands', title: 'Press it', why: 'It is off.' }),
    })
    t.match(await asked.json(), { status: 'open', allowed: { give: false, reason: 'a person gives it' } })
  })

  await t.test('what is asked has no value of a stored secret in it', async t => {
    const id = await conversation()
    for (const more of [{ title: `Is ${VALUE} right?` }, { why: Buffer.from(VALUE).toString('base64') }])
      t.match(await refusalOf(() => ask(id, more)), {
        status: 422,
        message: /the value of the secret DEPLOY_TOKEN: write \{\{secret:DEPLOY_TOKEN\}\}/,
      })
    t.same(filesWith(daemon.data, VALUE), [])
  })

  await t.test('a secret or a connection that comes by itself settles the need', async t => {
    const id = await conversation()
    const secret = { key: 'key', label: 'A key', type: 'secret', required: true, secretKey: 'OTHER_KEY' } as const
    const need = await ask(id, { kind: 'secret', title: 'A key', fields: [secret] })
    await client.call('POST /secrets', { key: 'OTHER_KEY', value: VALUE })
    await until(async () => (await read(need.id)).continued !== undefined)
    t.match(await read(need.id), {
      status: 'given',
      settledBy: 'secret:OTHER_KEY',
      answers: { key: '{{secret:OTHER_KEY}}' },
    })
    const wanted = await ask(id, { kind: 'capability', title: 'An agent program', card: 'agent' })
    t.match(await refusalOf(() => give(wanted.id, { answers: {} })), { status: 409, message: /not connected yet/ })
    await add(daemon, {
      ...{ id: 'scripts', kind: 'agent' },
      config: { command: `node ${programFile('plugins/agent/providers/script-agent.js')}` },
    })
    await until(async () => (await read(wanted.id)).continued !== undefined)
    t.match(await read(wanted.id), { status: 'given', settledBy: 'capability:scripts' })
  })

  await t.test('people limited to areas see the needs of their conversations alone', async t => {
    const ada = clientOf(daemon, 'ada@example.org')
    await runTurn(ada, 'hers', 'say hello', { startIn: 'site' })
    const need = await ask('hers', { fields: [{ key: 'page', label: 'A page', type: 'file', required: true }] })
    const other = await ask(await conversation())
    t.match(await ada.call('GET /needs', {}), { needs: exactly({ id: need.id }), open: 1 })
    t.match(await refusalOf(() => ada.call('GET /needs/{id}', { id: other.id })), { status: 404 })
    t.match(await refusalOf(() => ada.call('POST /needs/{id}/give', { id: other.id })), { status: 404 })
    const file = (path: string) => ada.call('POST /needs/{id}/give', { id: need.id, answers: { page: path } })
    for (const path of ['notes.txt', 'site', 'nothing', '../x', '/etc/passwd'])
      t.match(await refusalOf(() => file(path)), { status: 422, message: /the path of a file/ }, path)
    await ended('hers', (await file('site/index.html')).run!)
    await cas.call('POST /needs/{id}/decline', { id: other.id, continue: false })
  })

  await t.test('bad input is refused with the field', async t => {
    const id = await conversation()
    const field = { key: 'one', label: 'One', required: true } as const
    const options = [
      { value: 'a', label: 'A' },
      { value: 'b', label: 'B' },
    ]
    for (const [more, status, message] of [
      [{ fields: [{ ...field, type: 'choice' }] }, 400, /fields\[0\]\.options/],
      [{ fields: [{ ...field, type: 'secret' }] }, 400, /fields\[0\]\.secretKey/],
      [{ fields: Array(2).fill({ ...field, type: 'text' }) }, 400, /fields\[1\]\.key.*one twice/],
      [{ kind: 'secret' }, 400, /fields/],
      [{ expiresAt: 1 }, 422, /expiresAt/],
      [{ kind: 'capability', card: 'no-such-card' }, 422, /card/],
      [{ kind: 'account', provider: 'anybody' }, 503, /keeps no accounts/],
      [{ conversationId: 'nobody' }, 404, /no conversation "nobody"/],
      [{ title: '' }, 400, /title/],
    ] as const)
      t.match(await refusalOf(() => ask(id, more as Partial<NeedInput>)), { status, message })
    const choice = await ask(id, { kind: 'decision', fields: [{ ...field, type: 'choice', options }] })
    for (const [answers, status, message] of [
      [{ one: 'c' }, 422, /one of a, b/],
      [{}, 422, /expected an answer/],
      [{ one: 'a', two: 'b' }, 422, /answers\.two/],
      [{ one: true }, 422, /a text/],
      [{ one: 'x'.repeat(70_000) }, 413, /65536 bytes/],
    ] as const)
      t.match(await refusalOf(() => give(choice.id, { answers: answers as never })), { status, message })
    t.match(await refusalOf(() => client.call('GET /needs', { status: 'closed' })), {
      status: 400,
      message: /"closed"/,
    })
    t.match(await refusalOf(() => read('n-0')), { status: 404 })
    const same = await ask(id, { dedupe: 'region' })
    t.equal((await ask(id, { dedupe: 'region' })).id, same.id)
    while ((await client.call('GET /needs', { conversationId: id })).needs.length < 20) await ask(id)
    t.match(await refusalOf(() => ask(id)), { status: 429, message: /20 needs are open/ })
    const { needs } = await client.call('GET /needs', { conversationId: id, limit: 2 })
    const older = await client.call('GET /needs', { conversationId: id, before: needs[1]!.raisedAt })
    t.equal(older.needs.length, 18, 'pages neither repeat nor leave out one')
    await give(choice.id, { answers: { one: 'b' }, continue: false })
  })
})
