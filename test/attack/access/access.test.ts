import { readFileSync } from 'node:fs'
import t from 'tap'
import { createClient } from '../../../sdk/client.js'
import type { Scope } from '../../../sdk/types.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { freshSession, guarded, needsOrigin, ROUTED, scopesOf } from '../calls.js'
import { head, rawRequest } from '../support.js'

const SCOPES: readonly Scope[] = ['editor', 'read', 'drive', 'land']

interface Answer {
  readonly status: number
  readonly message: string
}

const ask = async (
  daemon: Support,
  method: string,
  path: string,
  headers: { [name: string]: string },
  body: object = {},
  from?: string,
): Promise<Answer> => {
  const { host } = new URL(daemon.url)
  const text = method === 'GET' ? '' : JSON.stringify(body)
  const sized: (readonly [string, string])[] = text
    ? [
        ['content-type', 'application/json'],
        ['content-length', String(Buffer.byteLength(text))],
      ]
    : []
  const answer = await rawRequest(
    daemon.url,
    head(method, path, [['host', host], ...Object.entries(headers), ...sized]) + text,
    from,
  )
  const parsed = JSON.parse(answer.body || '{}') as { message?: string }
  return { status: answer.status, message: parsed.message ?? '' }
}

t.test('each scope reaches the calls that name it, and every other is 403 with the message', async t => {
  const daemon = await guarded(t)
  for (const scope of SCOPES) {
    const { token } = await daemon.token(scope)
    for (const routed of ROUTED) {
      const { call, method, path, access } = routed
      const scopes = scopesOf(routed)
      const { status, message } = await ask(daemon, method, path, { 'x-sandbox-control': token })
      if ('open' in access && access.ticket) {
        t.same(
          [[401, 426].includes(status), daemon.reached()],
          [true, []],
          `${call} takes a ticket and no token, found ${status}`,
        )
        continue
      }
      if (needsOrigin(routed)) {
        t.same([status, daemon.reached()], [403, []], `${call} is for pages of sites`)
        continue
      }
      if (scopes === 'open' || scopes.includes(scope)) {
        t.same([status, daemon.reached()], [409, [call]], `${scope} reaches ${call}`)
        continue
      }
      t.same([status, daemon.reached()], [403, []], `${scope} does not reach ${call}`)
      t.match(message, `found scope ${scope}`)
      t.match(
        message,
        scopes.length === 0
          ? `control tokens cannot make the call ${access.id}`
          : `${access.id} needs a control token of scope ${scopes.join(' or ')}`,
      )
    }
  }
})

t.test("the published document agrees with the daemon's access rules for every call", async t => {
  const daemon = await guarded(t)
  const document = (await (await daemon.fetch('/openapi.json')).json()) as {
    paths: { [path: string]: { [method: string]: { 'x-token': string[]; 'x-floor': string; operationId: string } } }
  }
  const told = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, one]) =>
        `${method.toUpperCase()} ${path} ${one['x-floor']} ${one['x-token'].join()} ${one.operationId}`,
    ),
  )
  const own = [
    'GET /health open  open.health',
    'GET /openapi.json open  open.document',
    'GET /reference open  open.reference',
  ]
  const known = ROUTED.map(
    ({ call, access }) =>
      `${call} ${'open' in access ? 'open ' : `${access.role} ${access.tokens.join()}`} ${access.id}`,
  )
  t.same(told.toSorted(), [...known, ...own].toSorted())
})

t.test('no token of any scope reaches the trust surface', async t => {
  const surface = ROUTED.filter(routed => scopesOf(routed).length === 0).map(({ call }) => call)
  for (const call of [
    'POST /system/control/tokens',
    'GET /system/control/tokens',
    'DELETE /system/control/tokens/{id}',
    'POST /system/sessions/revoke',
  ])
    t.ok(surface.includes(call), call)
  // Past conversations are not sign-ins, the logs of a repository and of a pipeline are not the daemon's, and a page's
  // code is no backup.
  const others = /^(?:GET|DELETE) \/sessions|^GET \/git\/\{repo\}\/log|^POST \/ci\/runs\/log$|\{id\}\/bundle$/
  t.same(
    ROUTED.filter(routed => !surface.includes(routed.call) && scopesOf(routed) !== 'open')
      .map(({ call }) => call)
      .filter(call => /secret|token|session|terminal|\blog|bundle|member/.test(call) && !others.test(call)),
    [],
  )
})

t.test('without a valid credential every call is 401 and none is reached', async t => {
  const daemon = await guarded(t)
  const { token } = await daemon.token('land')
  const { token: revoked, id } = await daemon.token('land', 'revoked')
  await daemon.auth.handlers['kernel.token.revoke'](
    { id },
    { caller: { kind: 'session', actor: 'x', role: 'owner' }, signal: AbortSignal.timeout(1000), trusted: true },
  )
  const ended = daemon.auth.openLocal('ended')
  await daemon.auth.handlers['kernel.session.revoke'](
    { id: ended.id },
    { caller: { kind: 'session', actor: 'x', role: 'owner' }, signal: AbortSignal.timeout(1000), trusted: true },
  )
  const good = `Bearer ${freshSession(daemon)}`
  const wrong: { [name: string]: string }[] = [
    {},
    { authorization: '' },
    { cookie: `session=${good}`, 'x-api-key': token },
    { authorization: `Bearer ${revoked}` },
    { authorization: `Bearer ${token}` },
    { authorization: `Bearer ${ended.token}` },
    { authorization: `Basic ${btoa('owner:x')}` },
    { 'x-sandbox-control': revoked },
    { 'x-sandbox-control': 'sbc___proto__.x' },
    { 'x-sandbox-control': good.slice(7) },
    // The first credential header decides, valid or not: a valid one after it is ignored.
    { 'x-sandbox-control': 'x', authorization: good },
    { 'x-sandbox-control': token.slice(0, -1), authorization: good },
    { 'x-sandbox-turn': 'sbt_x', authorization: good },
    { 'x-sandbox-extension': 'sbe_x', authorization: good },
    { 'x-sandbox-run': 'sbl_x', authorization: good },
    { 'x-sandbox-turn': token },
    { 'x-sandbox-run': good.slice(7) },
    { 'x-sandbox-extension': good.slice(7) },
  ]
  for (const [at, routed] of ROUTED.entries()) {
    if (scopesOf(routed) === 'open') continue
    for (const headers of wrong) {
      // Each call from its own address: an address with too many failures gets another refusal.
      const { status } = await ask(
        daemon,
        routed.method,
        routed.path,
        headers,
        {},
        `127.0.${1 + Math.floor(at / 250)}.${1 + (at % 250)}`,
      )
      t.equal(status, 401, `${routed.call} ${Object.keys(headers).join()}`)
    }
    t.same(daemon.reached(), [], routed.call)
  }
  t.match(await ask(daemon, 'GET', '/info', { authorization: good }), { status: 409 }, 'valid ones keep working')
  t.same(daemon.reached(), ['GET /info'])
  t.match(
    await ask(daemon, 'GET', '/system/control/tokens', { 'x-sandbox-control': token, authorization: good }),
    { status: 403 },
    'a token in front of a session counts, and its scope is too low',
  )
})

t.test('a session of the owner reaches every call, and an ended session none', async t => {
  const daemon = await guarded(t)
  const opened = daemon.auth.openLocal('one')
  for (const routed of ROUTED) {
    const { call, method, path, access } = routed
    const { status } = await ask(daemon, method, path, { authorization: `Bearer ${opened.token}` })
    const reached = daemon.reached()
    // It checks only the ticket.
    if ('open' in access && access.ticket) t.ok([401, 426].includes(status) && !reached.length, `${call}: ${status}`)
    else if ('only' in access || needsOrigin(routed)) t.same([status, reached], [403, []], `${call} is not for people`)
    else t.same([status, reached], [409, [call]], call)
  }
})

t.test('fields in a body or a query that name a person do not change the caller', async t => {
  const daemon = await daemonWith(t, [])
  const { token } = await daemon.token('drive')
  const claims = {
    actor: 'owner@sandbox.local',
    caller: { kind: 'session', role: 'owner' },
    role: 'owner',
    by: 'owner@sandbox.local',
    openedBy: 'owner@sandbox.local',
    tokenId: 'x',
    trusted: true,
  }
  const headers = {
    'x-sandbox-control': token,
    'x-sandbox-actor': 'owner@sandbox.local',
    'x-forwarded-user': 'owner@sandbox.local',
    'x-remote-user': 'owner',
  }
  t.equal(
    (await ask(daemon, 'POST', '/agent', headers, { conversationId: 'c-1', prompt: 'say hello', ...claims })).status,
    200,
  )
  await framesOf(daemon.client, 'c-1').all()
  t.match(await daemon.client.call('GET /agents/{id}', { id: 'c-1' }), {
    openedBy: 'token:drive',
    lastBy: 'token:drive',
  })
  t.equal((await ask(daemon, 'POST', '/agents/c-1/land', headers, claims)).status, 403)
  t.equal(
    (await ask(daemon, 'POST', '/agent', headers, { prompt: 'x', origin: { automationId: 'a', provider: 'b' } }))
      .status,
    400,
  )
})

/** What an editor token must not do to a conversation of another caller. */
const FOREIGN: readonly (readonly [call: string, path: string, body: object])[] = [
  ['POST', '/agent', { conversationId: 'theirs', prompt: 'say mine' }],
  ['POST', '/agent', { conversationId: 'theirs', prompt: 'say mine', messageId: 'known' }],
  ['POST', '/agent', { prompt: 'say mine', messageId: 'known' }],
  [
    'POST',
    '/agent',
    { conversationId: 'new-1', prompt: 'say mine', forkOf: { conversationId: 'theirs', keep: 1, files: 'now' } },
  ],
  ['POST', '/agent', { conversationId: 'new-2', prompt: 'say mine', sessionId: 'theirs' }],
  ['POST', '/agent/attach', { conversationId: 'theirs' }],
  ['POST', '/agent/steer', { conversationId: 'theirs', text: 'do something else' }],
  ['POST', '/agent/stop', { conversationId: 'theirs' }],
  ['GET', '/agents/theirs/transcript', {}],
  ['GET', '/agent/processes/theirs/sh-1', {}],
  ['DELETE', '/agent/processes/theirs/sh-1', {}],
]

t.test('every call an editor token reaches is attacked below', async t => {
  const reached = ROUTED.filter(routed => scopesOf(routed) !== 'open' && scopesOf(routed).includes('editor')).map(
    ({ call }) => call,
  )
  // Subagents of other callers are tested in test/plugins/system/subagents.test.ts, open cards, commands in the
  // background and past conversations beside the groups that serve them. The search of the workspace reads no
  // conversation.
  const attacked = new Set([
    'POST /agent/reply',
    'GET /agent/cards',
    'GET /agent/processes',
    'GET /sessions',
    'GET /sessions/{id}',
    'GET /system/subagents/{id}/transcript',
    'GET /workspace/search',
    ...FOREIGN.map(
      ([method, path]) => `${method} ${path.replace('theirs/sh-1', '{conversationId}/{id}').replace('theirs', '{id}')}`,
    ),
  ])
  t.same(reached.toSorted(), [...attacked].toSorted(), 'a new call needs its own attack')
})

t.test(
  'an editor token does nothing in a conversation it did not open, nor does another of the same label',
  async t => {
    const daemon = await daemonWith(t, [])
    const { client } = daemon
    const first = await daemon.token('editor', 'ide')
    const second = await daemon.token('editor', 'ide')
    const opened = async (by: typeof client, id: string, messageId: string) => {
      await by.call('POST /agent', { conversationId: id, messageId, prompt: 'ask Which?\n| a\n| b\nsay $answer' })
      return framesOf(by, id).until(frame => frame.kind === 'question')
    }
    const { requestId } = await opened(first.client, 'theirs', 'known')
    const mine = await opened(client, 'owners', 'known-2')
    const before = JSON.stringify(await client.call('GET /agents/{id}', { id: 'theirs' }))
    for (const [method, path, body] of FOREIGN) {
      const { status, message } = await ask(daemon, method, path, { 'x-sandbox-control': second.token }, body)
      t.ok(status === 403 || status === 404, `${method} ${path} ${JSON.stringify(body)}: ${status} ${message}`)
    }
    const answer = { kind: 'question', answers: { 'Which?': 'b' } }
    t.equal(
      (await ask(daemon, 'POST', '/agent/reply', { 'x-sandbox-control': second.token }, { ...answer, requestId }))
        .status,
      403,
    )
    t.equal(
      (
        await ask(
          daemon,
          'POST',
          '/agent/reply',
          { 'x-sandbox-control': second.token },
          { ...answer, requestId: mine.requestId },
        )
      ).status,
      403,
    )
    t.equal(
      (await ask(daemon, 'POST', '/agent/stop', { 'x-sandbox-control': first.token }, { conversationId: 'owners' }))
        .status,
      403,
    )
    t.equal(JSON.stringify(await client.call('GET /agents/{id}', { id: 'theirs' })), before, 'nothing moved')
    t.same(
      (await client.call('GET /agents')).agents.map(({ id }) => id).toSorted(),
      ['owners', 'theirs'],
      'nothing was opened',
    )
    t.equal(
      (await ask(daemon, 'POST', '/agent/reply', { 'x-sandbox-control': first.token }, { ...answer, requestId }))
        .status,
      200,
      'its own token answers',
    )
    await framesOf(first.client, 'theirs').all()
    t.match((await first.client.call('GET /agents/{id}/transcript', { id: 'theirs' })).messages.at(-1), { text: /b/ })
    await client.call('POST /agent/stop', { conversationId: 'owners' })
  },
)

t.test('a purged conversation cannot be taken over by its id', async t => {
  const daemon = await daemonWith(t, [])
  const { client } = daemon
  await runTurn(client, 'gone', 'write secret.txt\n| secret', { isolated: true })
  await client.call('POST /agents/{id}/discard', { id: 'gone' })
  const { token } = await daemon.token('editor')
  for (const [method, path, body] of FOREIGN) {
    const named = JSON.parse(JSON.stringify(body).replaceAll('theirs', 'gone').replaceAll('known', 'unknown')) as {
      conversationId?: string
      prompt?: string
    }
    if (named.conversationId !== 'gone' && path === '/agent') continue
    const { status } = await ask(daemon, method, path.replace('theirs', 'gone'), { 'x-sandbox-control': token }, named)
    t.ok(status === 403 || status === 404, `${method} ${path} ${status}`)
  }
})

t.test('a token revoked during its turn stops working at once, and the turn continues', async t => {
  const daemon = await daemonWith(t, [])
  const { client, id, token } = await daemon.token('editor')
  await client.call('POST /agent', { conversationId: 'c-1', prompt: 'ask Which?\n| a\nsay $answer' })
  const watched = framesOf(createClient({ url: daemon.url, token, retry: { attempts: 0 } }), 'c-1')
  const { requestId } = await watched.until(frame => frame.kind === 'question')
  await daemon.client.call('DELETE /system/control/tokens/{id}', { id })
  await t.rejects(watched.all(), 'its stream is closed')
  t.equal(
    (
      await ask(
        daemon,
        'POST',
        '/agent/reply',
        { 'x-sandbox-control': token },
        { kind: 'question', requestId, answers: { 'Which?': 'a' } },
      )
    ).status,
    401,
  )
  const again = await daemon.token('editor')
  t.equal(
    (await ask(daemon, 'POST', '/agent/stop', { 'x-sandbox-control': again.token }, { conversationId: 'c-1' })).status,
    403,
    'a new token of the same label did not open it',
  )
  await daemon.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Which?': 'a' } })
  t.equal((await framesOf(daemon.client, 'c-1').all()).at(-1)?.event.kind, 'done')
})

t.test('a token of scope drive moves nothing into the main tree with any call', async t => {
  const daemon = await daemonWith(t, [])
  const { client, workspace } = daemon
  const drive = await daemon.token('drive')
  for (const extra of [{ autoLand: true }, { autoLand: true, isolated: true }]) {
    const { status } = await ask(
      daemon,
      'POST',
      '/agent',
      { 'x-sandbox-control': drive.token },
      { conversationId: 'auto', prompt: 'write README.md\n| theirs', ...extra },
    )
    t.equal(status, 403)
  }
  t.same((await client.call('GET /agents')).agents, [])
  await runTurn(client, 'c-1', 'say mine', { isolated: true })
  await runTurn(drive.client, 'c-1', 'write README.md\n| theirs')
  await t.rejects(drive.client.call('POST /agents/{id}/land', { id: 'c-1' }), { message: 'found scope drive' })
  await t.rejects(drive.client.call('POST /agents/{id}/land', { id: 'c-1', force: true, span: 'cumulative' }), {
    message: 'found scope drive',
  })
  t.equal(readFileSync(`${workspace}/README.md`, 'utf8'), '# work\n')
})
