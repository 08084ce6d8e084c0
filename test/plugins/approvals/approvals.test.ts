import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Approval, ApprovalInput } from '../../../plugins/approvals/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import { runTurn } from '../../support/turns.js'
import { filesWith, openVaultOf } from '../secrets/support.js'
import { hookServer, itemIn } from './support.js'

const AS = {
  caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
  signal: new AbortController().signal,
  trusted: false,
} as const
const VALUE = 'tr0ub4dor&3-and-more'
/** The actions for which connections were asked. */
const asked: string[] = []
const GROUPS = ['approvals', 'agent', 'agents', 'secrets', 'activity', 'settings', 'personas', 'skills', 'safety']

/** `mai` is a maintainer, `cas` a collaborator, `vic` a viewer, `ada` a collaborator with one area. */
const approvalsWith = async (t: Test): Promise<Support> => {
  const people = new People()
  people.add('mai@example.org', 'maintainer')
  people.add('cas@example.org', 'collaborator')
  people.add('vic@example.org', 'viewer')
  people.add('ada@example.org', 'collaborator', ['site'])
  const daemon = await daemonWith(t, GROUPS, {
    fakes: {
      ...people.fakes,
      'areas.reach': () => ({ folders: [{ path: 'site', access: 'work' }] }),
      'capabilities.checkAction': ({ key }) => {
        asked.push(key)
        return {}
      },
    },
    files: { 'site/photo.txt': 'the filed picture', 'notes.txt': 'a note\n' },
  })
  people.admit(daemon)
  return daemon
}

t.test('approvals', async t => {
  const hook = await hookServer(t)
  const daemon = await approvalsWith(t)
  const { client, workspace } = daemon
  const [mai, cas, ada] = ['mai', 'cas', 'ada'].map(name => clientOf(daemon, `${name}@example.org`)) as [
    Support['client'],
    Support['client'],
    Support['client'],
  ]
  await client.call('POST /settings/patch', { set: { networkAllow: [`localhost:${hook.port}`] } })
  await openVaultOf(daemon)
  await client.call('POST /secrets', { key: 'HOOK', value: VALUE })
  await runTurn(client, 'first', 'say ready')
  const post = (more: Partial<ApprovalInput['post'] & object> = {}): ApprovalInput => ({
    kind: 'post',
    post: { platform: 'webhook', target: hook.url, content: 'Version 2 is out.', ...more },
  })
  const action = (more: Partial<ApprovalInput['action'] & object> = {}): ApprovalInput => ({
    kind: 'action',
    action: { key: 'chat.message.send', summary: 'Say hello', args: { text: 'hello' }, ...more },
  })
  const propose = (input: ApprovalInput = post(), by = cas) => by.call('POST /approvals', input)
  const approve = ({ id, digest }: { id: string; digest: string }, more: object = { now: true }, by = mai) =>
    by.call('POST /approvals/{id}/approve', { id, digest, ...more })

  await t.test('without a credential and with too little of one nothing is read, proposed or decided', async t => {
    const { id, digest } = await propose()
    const calls = [
      ['GET', '/approvals', undefined, []],
      ['POST', '/approvals', post(), ['read', 'vic']],
      ['POST', `/approvals/${id}/approve`, { digest }, ['read', 'drive', 'land', 'vic', 'cas']],
      ['POST', `/approvals/${id}/recall`, {}, ['read', 'drive', 'land', 'vic', 'cas']],
      ['POST', `/approvals/${id}/decline`, {}, ['read', 'drive', 'land', 'vic', 'cas']],
      ['DELETE', `/approvals/${id}`, undefined, ['read', 'drive', 'land', 'vic', 'cas']],
      ['GET', '/drafts', undefined, []],
      ['POST', '/drafts', post().post, ['read', 'vic']],
      ['DELETE', `/drafts/${id}`, undefined, ['read', 'drive', 'land', 'vic', 'cas']],
    ] as const
    for (const [method, path, body, refused] of calls) {
      const send = async (headers: { [name: string]: string }) => {
        const type = body ? { 'content-type': 'application/json', ...headers } : headers
        return (await fetch(daemon.url + path, { method, headers: type, ...(body && { body: JSON.stringify(body) }) }))
          .status
      }
      t.equal(await send({}), 401, `${method} ${path}`)
      for (const who of ['editor', ...refused]) {
        const isPerson = who === 'vic' || who === 'cas'
        const headers: { [name: string]: string } = isPerson
          ? { authorization: `Bearer ${who}@example.org` }
          : { 'x-sandbox-control': (await daemon.token(who as 'read')).token }
        t.equal(await send(headers), 403, `${method} ${path} with ${who}`)
      }
    }
    t.equal(hook.received.length, 0)
    await mai.call('DELETE /approvals/{id}', { id })
    t.match(await client.call('GET /approvals', {}), { approvals: exactly(), counts: {} })
  })

  await t.test('malformed proposals are refused, and nothing is stored', async t => {
    const both = { ...post(), action: action().action! }
    for (const [input, status, message] of [
      [{ ...action(), kind: 'post' }, 400, /post: expected a post, as kind says/],
      [both, 400, /action: expected none/],
      [post({ media: ['../../x'] }), 400, /workspace path/],
      [post({ content: 'x'.repeat(40_001) }), 400, /content/],
      [post({ media: ['no-such-file'] }), 422, /no-such-file/],
      [post({ media: ['site'] }), 422, /folder/],
      [action({ args: { text: 'x'.repeat(65_536) } }), 400, /65536 bytes/],
      [action({ args: { token: VALUE } }), 422, /the secret HOOK/],
      [post({ content: `use ${VALUE}` }), 422, /the secret HOOK/],
      [{ ...post(), conversationId: 'nobody' }, 422, /no conversation "nobody"/],
    ] as const)
      t.match(await refusalOf(() => propose(input as ApprovalInput)), { status, message })
    t.match(await refusalOf(() => client.call('GET /approvals', { status: 'open' })), {
      status: 400,
      message: /"open"/,
    })
    t.same(filesWith(daemon.data, VALUE), [])
    t.same((await client.call('GET /approvals', {})).approvals, [])
    for (const call of ['recall', 'decline'] as const)
      t.equal((await refusalOf(() => mai.call(`POST /approvals/{id}/${call}`, { id: 'a-0' }))).status, 404)
    t.equal((await refusalOf(() => approve({ id: 'a-0', digest: 'b'.repeat(64) }))).status, 404)
    t.equal((await refusalOf(() => mai.call('DELETE /approvals/{id}', { id: 'a-0' }))).status, 404)
  })

  await t.test('what was shown is sent once, as it was shown', async t => {
    const item = await propose(post({ content: '{"text":"Größe ☃"}' }))
    t.match(item, { status: 'proposed', via: 'executor', proposedBy: 'cas@example.org', ownerOnly: false })
    t.equal(hook.received.length, 0)
    await approve(item)
    const done = await itemIn(client, item.id, 'done')
    t.match(done, { result: '200 OK\ntaken', attempts: exactly({ outcome: 'done', via: 'executor' }) })
    t.equal(hook.received.length, 1)
    const [request] = hook.received.splice(0)
    t.match(request, { method: 'POST', path: '/hook', headers: { 'content-type': 'application/json' } })
    t.equal(Buffer.from(request!.body, 'latin1').toString(), '{"text":"Größe ☃"}')
    t.equal(request!.headers['idempotency-key'], `${item.id}-1`)
    t.match(await refusalOf(() => approve(item)), { status: 409, message: /is done/ })
    t.match(await refusalOf(() => propose({ ...post(), id: item.id })), { status: 409 })
    const { events } = await client.call('GET /activity', { type: 'webhook.post' })
    t.match(events, exactly({ direction: 'out', extra: { id: item.id, digest: item.digest } }))
    t.equal(hook.received.length, 0)
  })

  await t.test('a yes is for the content that was read', async t => {
    const item = await propose()
    const edited = await propose({ ...post({ content: 'Version 3 is out.' }), id: item.id }, mai)
    t.match(edited, { id: item.id, status: 'proposed', proposedBy: 'mai@example.org' })
    t.match(await refusalOf(() => approve(item)), { status: 409, message: /changed/ })
    t.match(await refusalOf(() => propose({ ...post(), id: item.id }, cas)), { status: 403 })
    await approve(edited, {})
    const again = await approve(edited, {}, client)
    t.match(again, { status: 'approved', approvedBy: 'mai@example.org' })
    t.equal((await propose({ ...post({ content: 'Version 4' }), id: item.id }, mai)).status, 'proposed')
    t.equal(hook.received.length, 0)
    await mai.call('DELETE /approvals/{id}', { id: item.id })
  })

  await t.test('a post waits for a minute, in which its yes is taken back', async t => {
    const item = await propose()
    const approved = await approve(item, {})
    t.equal(approved.sendAt! - approved.approvedAt!, 60_000)
    t.match(await refusalOf(() => mai.call('POST /approvals/{id}/decline', { id: item.id })), {
      status: 409,
      message: /recall it first/,
    })
    const recalled = await mai.call('POST /approvals/{id}/recall', { id: item.id })
    t.match(recalled, { status: 'proposed', sendAt: undefined, approvedBy: undefined })
    t.match(await refusalOf(() => mai.call('POST /approvals/{id}/recall', { id: item.id })), { status: 409 })
    t.match(await refusalOf(() => approve(item, { scheduledAt: Date.now() + 400 * 86_400_000 })), { status: 422 })
    const soon = Date.now() + 300
    t.equal((await approve(item, { scheduledAt: soon })).sendAt, soon)
    await itemIn(client, item.id, 'done')
    t.ok(Date.now() >= soon)
    t.equal(hook.received.splice(0).length, 1)
  })

  await t.test('what was recalled and approved again while another is sent waits for its new time', async t => {
    hook.state.answer = undefined
    const [slow, item] = [await propose(), await propose(post({ content: 'The second.' }))]
    await approve(slow)
    await itemIn(client, slow.id, 'sending')
    t.match(await refusalOf(() => mai.call('POST /approvals/{id}/recall', { id: slow.id })), { status: 409 })
    await approve(item)
    await mai.call('POST /approvals/{id}/recall', { id: item.id })
    await approve(item, { scheduledAt: Date.now() + 700 })
    hook.state.answer = { status: 200, body: 'taken' }
    hook.closeAll()
    t.match((await itemIn(client, slow.id, 'failed')).attempts, exactly({ outcome: 'unknown', error: /look before/ }))
    await itemIn(client, item.id, 'done')
    t.match(hook.received.splice(0), exactly({ body: slow.post!.content }, { body: 'The second.' }))
  })

  await t.test('the filed bytes are sent, whatever becomes of the file', async t => {
    const item = await propose(post({ title: 'A picture', media: ['site/photo.txt'] }))
    writeFileSync(join(workspace, 'site/photo.txt'), 'another picture')
    t.not((await propose(post({ title: 'A picture', media: ['site/photo.txt'] }))).digest, item.digest)
    await approve(item)
    await itemIn(client, item.id, 'done')
    const { body, headers } = hook.received.splice(0)[0]!
    t.match(headers['content-type'], /^multipart\/form-data/)
    const form = await new Response(Buffer.from(body, 'latin1'), {
      headers: { 'content-type': headers['content-type']! },
    }).formData()
    t.equal(form.get('title'), 'A picture')
    t.equal(await (form.get('media') as File).text(), 'the filed picture')
    await mai.call('DELETE /approvals/{id}', { id: item.id })
    t.same(filesWith(daemon.data, 'the filed picture'), [])
  })

  await t.test('media over 100 MiB are refused, and no copy stays', async t => {
    mkdirSync(join(workspace, 'big'))
    writeFileSync(join(workspace, 'big/file'), Buffer.alloc(100 * 1024 * 1024 + 1, 'q'))
    t.match(await refusalOf(() => propose(post({ media: ['big/file'] }))), { status: 413 })
    t.same(filesWith(daemon.data, 'q'.repeat(4096)), [])
  })

  await t.test('secrets are put in when it is sent, and are nowhere in the answers', async t => {
    hook.state.answer = { status: 200, body: `got ${VALUE}` }
    const item = await propose(post({ target: `${hook.url}?key={{secret:HOOK}}`, content: 'by {{secret:HOOK}}' }))
    await approve(item)
    const done = await itemIn(client, item.id, 'done')
    const [request] = hook.received.splice(0)
    t.equal(request!.body, `by ${VALUE}`)
    t.equal(request!.path, `/hook?key=${VALUE}`)
    t.equal(done.result, '200 OK\ngot {{secret:HOOK}}')
    t.same(filesWith(daemon.data, VALUE), [])
    hook.state.answer = { status: 200 }
    const unknown = await propose(post({ content: '{{secret:NOBODY}}' }))
    await approve(unknown)
    t.match(await itemIn(client, unknown.id, 'failed'), { attempts: exactly({ error: /NOBODY/ }) })
    t.equal(hook.received.length, 0)
  })

  await t.test('a server that refuses, redirects or cuts fails the item, and a new yes has another key', async t => {
    hook.state.answer = { status: 503, body: 'later' }
    const item = await propose()
    await approve(item)
    const failed = await itemIn(client, item.id, 'failed')
    t.match(failed.attempts, exactly({ outcome: 'failed', error: /503 Service Unavailable: later/ }))
    hook.state.answer = { status: 307, headers: { location: '/elsewhere' } }
    await approve(failed)
    t.match((await itemIn(client, item.id, 'failed')).attempts, exactly({}, { outcome: 'unknown', error: /redirects/ }))
    hook.state.answer = { status: 201, headers: { location: '/posts/1' } }
    await approve(failed)
    const done = await itemIn(client, item.id, 'done')
    t.equal(done.url, `http://127.0.0.1:${hook.port}/posts/1`)
    t.same(
      hook.received.splice(0).map(({ headers }) => headers['idempotency-key']),
      [1, 2, 3].map(n => `${item.id}-${n}`),
    )
    hook.state.answer = { status: 200 }
    const near = await propose(post({ target: 'http://127.0.0.1:9/' }))
    await approve(near)
    t.match((await itemIn(client, near.id, 'failed')).attempts, exactly({ outcome: 'failed', error: /not reached/ }))
  })

  await t.test('what nothing here can do is not approved, and says why', async t => {
    for (const [input, message] of [
      [post({ platform: 'forum' }), /names no persona/],
      [{ ...post({ platform: 'forum' }), actsAs: 'nobody' }, /no persona "nobody"/],
      [post({ target: undefined as never }), /needs the address/],
      [action(), /no running extension has a tool chat\.message\.send/],
    ] as const) {
      const item = await propose(input)
      t.match(item, { via: 'nobody', problem: message })
      t.match(await refusalOf(() => approve(item)), { status: 424, message })
      t.match(await mai.call('POST /approvals/{id}/decline', { id: item.id }), { status: 'declined' })
      t.match(await refusalOf(() => approve(item)), { status: 409, message: /declined/ })
    }
    const paid = await propose(action({ key: 'shop.payment.send' }))
    t.equal(paid.ownerOnly, true)
    t.match(await refusalOf(() => approve(paid)), { status: 403, message: /only the owner/ })
    t.equal((await refusalOf(() => approve(paid, {}, client))).status, 424)
  })

  await t.test('the agent is told why something was declined', async t => {
    const item = await propose({ ...post(), conversationId: 'first', tellAgent: true })
    const quiet = await propose({ ...post(), conversationId: 'first' })
    await mai.call('POST /approvals/{id}/decline', { id: quiet.id, reason: 'quietly' })
    await mai.call('POST /approvals/{id}/decline', { id: item.id, reason: 'Not before Monday.' })
    for (;;) {
      const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'first' })
      const said = messages.flatMap(message => (message.role === 'user' ? [message.text] : []))
      t.notOk(said.some(text => text.includes('quietly')))
      if (said.some(text => /was declined: Not before Monday\./.test(text))) break
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })

  await t.test('a turn proposes, and its proposal is counted until somebody decides', async t => {
    const frames = await runTurn(client, 'proposes', `propose webhook ${hook.url}\n| News\n| of today\nsay done`)
    const [item] = (await client.call('GET /approvals', { conversationId: 'proposes' })).approvals
    t.match(item, { post: { content: 'News\nof today' }, proposedBy: 'conversation:proposes', status: 'proposed' })
    t.match(
      frames.find(({ kind }) => kind === 'approval'),
      { id: item!.id, title: 'webhook: News of today', status: 'proposed' },
    )
    t.ok(JSON.stringify(frames).includes("waits for a person's yes"))
    const counted = () => daemon.kernel.calls.answer('approvals.counts', {}, AS) as Promise<{ proposed: object }>
    t.match((await counted()).proposed, { proposes: 1 })
    t.equal(hook.received.length, 0)
    await approve(item!)
    await itemIn(client, item!.id, 'done')
    t.equal(hook.received.splice(0)[0]?.body, 'News\nof today')
    t.notOk('proposes' in (await counted()).proposed)
  })

  await t.test('a conversation proposes until 50 wait for a decision', async t => {
    const file = (more: object = {}) =>
      daemon.kernel.calls.answer(
        'approvals.file',
        { ...post(), conversationId: 'first', run: 'r-many', ...more },
        AS,
      ) as Promise<Approval>
    const tried = await Promise.allSettled(Array.from({ length: 52 }, () => file()))
    const filed = tried.flatMap(each => (each.status === 'fulfilled' ? [each.value.id] : []))
    t.equal(filed.length, 50, 'also of those that come at once')
    t.match(
      tried.filter(({ status }) => status === 'rejected'),
      exactly({}, { reason: { reason: 'too-many', message: /^50 proposals of this conversation wait/ } }),
    )
    const [id = ''] = filed
    t.match(await file({ id }), { id }, 'one of them is replaced')
    await mai.call('POST /approvals/{id}/decline', { id })
    filed.push((await file()).id)
    for (const each of filed) await mai.call('DELETE /approvals/{id}', { id: each })
  })

  await t.test('no command of a turn reaches the queue', async t => {
    const item = await propose({ ...post({ content: 'a-word-to-find' }), conversationId: 'first' })
    const look = `grep -rl a-word-to-find "$HOME" "$PWD/.." ${daemon.data} 2>/dev/null; echo searched`
    const frames = await runTurn(client, 'looks', `run ${look}`, { permissionMode: 'bypassPermissions' })
    t.match(JSON.stringify(frames), /searched/)
    t.notMatch(JSON.stringify(frames), /sqlite/)
    t.equal((await itemIn(client, item.id, 'proposed')).digest, item.digest)
  })

  await t.test('people limited to areas see what their conversations and they themselves propose', async t => {
    await runTurn(client, 'inside', 'say ready', { startIn: 'site' })
    const own = await propose(post({ media: ['site/photo.txt'] }), ada)
    await propose({ ...post(), conversationId: 'first' })
    t.same(
      (await ada.call('GET /approvals', {})).approvals.map(({ id }) => id),
      [own.id],
    )
    t.match(await refusalOf(() => propose(post({ media: ['notes.txt'] }), ada)), { status: 422 })
    t.match(await refusalOf(() => propose({ ...post(), conversationId: 'first' }, ada)), { status: 422 })
    const asked = await propose(action())
    const { token } = await daemon.token('read')
    const answer = await fetch(`${daemon.url}/approvals?kind=action&limit=1`, {
      headers: { 'x-sandbox-control': token },
    })
    const { approvals } = (await answer.json()) as { approvals: { id: string; action: object }[] }
    t.equal(approvals[0]!.id, asked.id)
    t.notOk('args' in approvals[0]!.action)
    const all = (await client.call('GET /approvals', { limit: 500 })).approvals
    const older = await client.call('GET /approvals', { before: all[0]!.createdAt })
    t.equal(older.approvals.length, all.length - 1)
  })

  await t.test('the older paths save, approve and remove posts', async t => {
    const draft = { platform: 'webhook', target: hook.url, content: 'an older client' }
    t.match(await refusalOf(() => cas.call('POST /drafts', { ...draft, status: 'approved' })), {
      status: 403,
      message: /only a maintainer says yes/,
    })
    t.match(await refusalOf(() => mai.call('POST /drafts', { ...draft, content: '' })), { status: 400 })
    const before = (await mai.call('GET /drafts')).drafts.map(({ id }) => id)
    const saved = await cas.call('POST /drafts', draft)
    t.match(saved, { ...draft, status: 'proposed' })
    t.same((await mai.call('GET /drafts')).drafts.map(({ id }) => id).slice(0, 1), [saved.id])
    const approved = await mai.call('POST /drafts', { ...draft, id: saved.id, content: 'as it is', status: 'approved' })
    t.match(approved, { id: saved.id, content: 'as it is', status: 'approved' })
    const { approvals } = await mai.call('GET /approvals', {})
    const { digest } = approvals.find(({ id }) => id === saved.id)!
    await approve({ id: saved.id, digest })
    await itemIn(client, saved.id, 'done')
    t.match(hook.received.splice(0), exactly({ body: 'as it is' }))
    t.match((await mai.call('GET /drafts')).drafts[0], { id: saved.id, status: 'posted' })
    t.match(await refusalOf(() => mai.call('POST /drafts', { ...draft, id: saved.id })), { status: 409 })

    const declined = await cas.call('POST /drafts', draft)
    await mai.call('POST /approvals/{id}/decline', { id: declined.id })
    const other = await propose(action())
    asked.splice(0)
    t.same(
      (await mai.call('GET /drafts')).drafts.map(({ id }) => id),
      [saved.id, ...before],
      'posts alone',
    )
    t.same(asked, [], 'no connection is asked about posts')
    t.equal((await refusalOf(() => mai.call('POST /drafts', { ...draft, id: other.id }))).status, 404)
    t.equal((await refusalOf(() => mai.call('DELETE /drafts/{id}', { id: other.id }))).status, 404)
    await mai.call('DELETE /drafts/{id}', { id: saved.id })
    t.same(
      (await mai.call('GET /drafts')).drafts.map(({ id }) => id),
      before,
    )
    for (const { id } of [declined, other]) await mai.call('DELETE /approvals/{id}', { id })
  })

  await t.test('a denial of the policy is stronger than a yes', async t => {
    const { policy, revision } = await client.call('GET /safety')
    const item = await propose()
    const rule = { id: 'no-hooks', label: 'No hooks', target: 'action', match: { action: 'webhook.*' } } as const
    await client.call('POST /safety', { policy: { ...policy, rules: [{ ...rule, verdict: 'deny' }] }, revision })
    await approve(item)
    t.match((await itemIn(client, item.id, 'failed')).attempts, exactly({ outcome: 'failed', error: /no-hooks/ }))
    t.equal(hook.received.length, 0)
    await client.call('POST /safety', { policy: { ...policy, rules: [{ ...rule, verdict: 'hold' }] } })
    await approve(item)
    await itemIn(client, item.id, 'done')
    t.equal(hook.received.splice(0).length, 1)
    await client.call('POST /safety', { policy })
  })
})
