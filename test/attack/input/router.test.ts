import t from 'tap'
import {
  freshSession,
  guarded,
  isForExtensions,
  isShadow,
  methodsAt,
  needsOrigin,
  ROUTED,
  takesAnyBody,
  judgesOrigins,
  takesTicket,
  type Guarded,
} from '../calls.js'
import { head, rawRequest, type RawAnswer } from '../support.js'

const STREAMS = new Set(['GET /events', 'GET /logs/follow', 'GET /cli/apply/events'])

type Headers = readonly (readonly [string, string])[]

const hostOf = ({ url }: Guarded): string => new URL(url).host

/** Sends requests with a session of the owner, so that only the path or the method can cause a refusal. */
const asOwner =
  (daemon: Guarded, session: string) =>
  (method: string, target: string, more: Headers = [], body = ''): Promise<RawAnswer> => {
    const sized: Headers =
      body || !['GET', 'HEAD', 'OPTIONS'].includes(method)
        ? [
            ['content-type', 'application/json'],
            ['content-length', String(Buffer.byteLength(body))],
          ]
        : []
    return rawRequest(
      daemon.url,
      head(method, target, [['host', hostOf(daemon)], ['authorization', `Bearer ${session}`], ...sized, ...more])
        + body,
    )
  }

/** Variants of a path that another parser might treat as the same. */
const disguises = (path: string, template: string): string[] => {
  const segments = path.slice(1).split('/')
  const literal = template
    .slice(1)
    .split('/')
    .map(segment => !segment.startsWith('{'))
  const changed = (at: number, to: string) => `/${segments.with(at, to).join('/')}`
  const cased = segments.flatMap((segment, at) =>
    literal[at]
      ? [changed(at, segment.toUpperCase()), changed(at, segment.slice(0, 1).toUpperCase() + segment.slice(1))]
      : [],
  )
  const spelled = segments.flatMap((segment, at) =>
    [
      `${segment}.`,
      `${segment}%20`,
      `${segment}%00`,
      `${segment};x`,
      `${segment}%5c`,
      `.%2f${segment}`,
      `..%2f${segment}`,
      `${segment}%2f..`,
    ].flatMap(to =>
      literal[at] || to.includes('%00') || to.includes('%5c') || to.includes('%2f') ? [changed(at, to)] : [],
    ),
  )
  const slashed = segments.map(
    (_, at) =>
      `/${segments
        .slice(0, at)
        .map(segment => `${segment}/`)
        .join('')}/${segments.slice(at).join('/')}`,
  )
  return [
    ...cased,
    ...spelled,
    ...slashed,
    // The rest of a path may end in a slash.
    ...(template.endsWith('/{path}') ? [] : [`${path}/`]),
    `/${path}/`,
    `/.${path}`,
    `/x/..${path}`,
    `/%2e${path}`,
    `/x/%2e%2e${path}`,
    `/%2e%2e${path}`,
    `/x/.%2e${path}`,
    `/%252e%252e${path}`,
    `${path}/.`,
    `${path}/%2e`,
    `${path}/..${path}`,
    `\\${path.slice(1)}`,
    `/\\${path.slice(1)}`,
    path.slice(1),
    `${path}%`,
    `${path}%zz`,
    `${path}%ff`,
    `*${path}`,
    `/${path.slice(1).replaceAll('/', '%2f')}%2f`,
    `http://other.example${path}`,
    `https:${path}`,
    `http:/${path}`,
    `http://x@${'other.example'}${path}`,
  ].filter(other => other !== path && other !== '')
}

t.test('each route is reached by its own path and by no variant of it', async t => {
  const daemon = await guarded(t)
  for (const routed of ROUTED) {
    const { call, method, path } = routed
    const ask = asOwner(daemon, freshSession(daemon))
    const { status } = await ask(method, path)
    if (takesTicket(routed))
      t.same([[401, 426].includes(status), daemon.reached()], [true, []], `${call} takes a ticket, found ${status}`)
    else if (isForExtensions(routed) || needsOrigin(routed))
      t.same([status, daemon.reached()], [403, []], `${call} is refused to people`)
    else t.same([status, daemon.reached()], [409, [call]], `${call} is reached by its path`)
    const forms = disguises(path, call.split(' ')[1]!)
    const answers = await Promise.all(forms.map(async form => ({ form, status: (await ask(method, form)).status })))
    const seen = daemon.reached()
    t.notOk(seen.includes(call), `${call} is reached by no variant`)
    // Another value may match a parameter of another route: then that route is reached, with its own access.
    const others = answers.filter(({ status }) => ![404, 400, 405].includes(status))
    t.same(
      [others.map(({ status }) => status), seen.length],
      [others.map(() => 409), others.length],
      `${call}: a disguise is 404 or 400`,
    )
    t.ok(others.length === 0 || isShadow(routed), `${call}: ${others.map(({ form }) => form).join(' ')}`)
  }
})

t.test('the routes of the kernel answer no variant either', async t => {
  const daemon = await guarded(t)
  const ask = asOwner(daemon, freshSession(daemon))
  for (const path of ['/health', '/openapi.json', '/reference', '/reference/style.css']) {
    t.equal((await ask('GET', path)).status, 200, path)
    const forms = disguises(path, path)
    const answers = await Promise.all(forms.map(async form => ({ form, status: (await ask('GET', form)).status })))
    t.same(
      answers.filter(({ status }) => status !== 404 && status !== 400),
      [],
    )
  }
})

t.test('an absolute target counts for its own host alone', async t => {
  const daemon = await guarded(t)
  const session = freshSession(daemon)
  for (const target of [
    'http://other.example/info',
    `http://${hostOf(daemon)}@other.example/info`,
    'http://other.example:80/system/control/tokens',
  ]) {
    const { status } = await asOwner(daemon, session)('GET', target)
    t.ok([400, 403, 404].includes(status), `${target}: ${status}`)
  }
  t.same(daemon.reached(), [])
})

const OVERRIDES = ['x-http-method-override', 'x-http-method', 'x-method-override', '_method', 'x-original-method']

t.test('no header, query or body changes the method or the path', async t => {
  const daemon = await guarded(t)
  const session = freshSession(daemon)
  const ask = asOwner(daemon, session)
  for (const { call, method, path } of ROUTED) {
    const served = methodsAt(path)
    const other = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'].find(one => !served.has(one))!
    const body = other === 'GET' ? '' : JSON.stringify({ _method: method })
    const { status, headers } = await ask(
      other,
      `${path}?_method=${method}`,
      OVERRIDES.map(name => [name, method] as const),
      body,
    )
    t.equal(status, 405, `${other} ${path}`)
    t.match(headers.toLowerCase(), `allow: `)
    t.same(daemon.reached(), [])
    for (const name of ['x-original-url', 'x-rewrite-url', 'x-forwarded-path', 'x-forwarded-prefix']) {
      t.equal(
        (
          await rawRequest(
            daemon.url,
            head('GET', '/health', [
              ['host', hostOf(daemon)],
              ['authorization', `Bearer ${session}`],
              [name, path],
            ]),
          )
        ).status,
        200,
      )
    }
    t.same(daemon.reached(), [], call)
  }
})

t.test('HEAD is answered like GET without a body, and reaches only GET calls', async t => {
  const daemon = await guarded(t)
  const session = freshSession(daemon)
  const { token: editor } = await daemon.token('editor')
  for (const routed of ROUTED) {
    const { call, method, path, access } = routed
    const plain = await asOwner(daemon, session)('HEAD', path)
    t.equal(plain.body, '')
    const seen = daemon.reached()
    if (method !== 'GET') {
      if (!methodsAt(path).has('GET')) t.same([plain.status, seen], [405, []], `HEAD of ${call}`)
      else t.notOk(seen.includes(call))
      continue
    }
    if (takesTicket(routed))
      t.same(
        [[401, 405].includes(plain.status), seen],
        [true, []],
        `HEAD of ${call} spends no ticket, found ${plain.status}`,
      )
    else if (STREAMS.has(call)) t.same([plain.status, seen], [405, []], 'HEAD of a stream is refused')
    else {
      const isClosed = isForExtensions(routed) || needsOrigin(routed)
      t.same([plain.status, seen], isClosed ? [403, []] : [409, [call]], `HEAD of ${call}`)
    }
    if ('open' in access) continue
    const bare = await rawRequest(daemon.url, head('HEAD', path, [['host', hostOf(daemon)]]))
    const narrow = await rawRequest(
      daemon.url,
      head('HEAD', path, [
        ['host', hostOf(daemon)],
        ['x-sandbox-control', editor],
      ]),
    )
    t.equal(bare.status, STREAMS.has(call) ? 405 : 401)
    if (!access.tokens.includes('editor') && !STREAMS.has(call)) t.equal(narrow.status, 403)
    t.same(
      daemon.reached().filter(() => !access.tokens.includes('editor')),
      [],
    )
  }
})

t.test('OPTIONS is answered the same for every path but those that judge origins, and nothing is reached', async t => {
  const daemon = await guarded(t)
  const session = freshSession(daemon)
  const without = ({ status, headers, body }: RawAnswer) => [status, headers.replace(/^date:.*$/im, ''), body]
  const first = without(await asOwner(daemon, session)('OPTIONS', '/nothing/here'))
  t.equal(first[0], 204)
  for (const routed of ROUTED) {
    const { path } = routed
    if (judgesOrigins(routed)) continue
    t.same(without(await asOwner(daemon, session)('OPTIONS', path)), first, path)
    t.same(
      without(await rawRequest(daemon.url, head('OPTIONS', path, [['host', hostOf(daemon)]]))),
      first,
      'also with a credential',
    )
  }
  t.same(daemon.reached(), [])
  for (const method of ['TRACE', 'CONNECT', 'PROPFIND', 'PATCH', 'PUT', 'LOCK', 'get', 'FOO']) {
    const { status } = await asOwner(daemon, session)(method, '/agents')
    t.ok([400, 404, 405, 0].includes(status), `${method}: ${status}`)
  }
  t.same(daemon.reached(), [])
})

t.test('an ambiguous request head reaches nothing', async t => {
  const daemon = await guarded(t)
  const host = ['host', hostOf(daemon)] as const
  const { token } = await daemon.token('land')
  for (const routed of ROUTED) {
    const { call, method, path, access } = routed
    const session = ['authorization', `Bearer ${freshSession(daemon)}`] as const
    const size = [
      ['content-type', 'application/json'],
      ['content-length', '2'],
    ] as const
    const control = ['x-sandbox-control', token] as const
    const always: Headers[] = [
      [host, host, session, ...size],
      [host, ['host', 'other.example'], session, ...size],
      [session, ...size],
      [host, session, ...size, ['transfer-encoding', 'chunked']],
      [host, session, ...size, ['content-length', '3']],
      [host, session, ...size, ['content-type', 'text/plain']],
      [host, session, ...size, ['origin', 'http://a.example'], ['origin', `http://${host[1]}`]],
      [host, session, session, ...size],
      [host, ['authorization', `${session[1]}, Bearer x`], ...size],
      [
        host,
        session,
        ['Transfer-Encoding', 'chunked'],
        ['Transfer-Encoding', 'identity'],
        ['content-type', 'application/json'],
      ],
    ]
    const credentials: Headers[] = [
      [host, control, control, ...size],
      [host, control, ['x-sandbox-control', 'x'], ...size],
      [host, ['x-sandbox-control', `${token},${token}`], ...size],
      [host, ['x-sandbox-control', `${token} x`], ...size],
      [host, ['X-Sandbox-Control', 'x'], session, ['x-sandbox-control', token], ...size],
    ]
    for (const headers of [...always, ...('open' in access ? [] : credentials)]) {
      const { status } = await rawRequest(daemon.url, `${head(method, path, headers)}{}`)
      t.ok(
        status === 400 || status === 403 || status === 401,
        `${call}: ${status} ${JSON.stringify(headers).slice(0, 200)}`,
      )
    }
    t.same(daemon.reached(), [], call)
  }
})

t.test('a foreign host or origin reaches nothing', async t => {
  const daemon = await guarded(t)
  const own = hostOf(daemon)
  for (const routed of ROUTED) {
    const { call, method, path } = routed
    const session = ['authorization', `Bearer ${freshSession(daemon)}`] as const
    const size = [
      ['content-type', 'application/json'],
      ['content-length', '2'],
    ] as const
    const foreign: Headers[] = [
      [['host', 'evil.example'], session, ...size],
      [['host', `${own}.evil.example`], session, ...size],
      [['host', '127.0.0.1.evil.example'], session, ...size],
      ...(judgesOrigins(routed) ? [] : [[['host', own], ['origin', 'null'], session, ...size] as const]),
      ...(method === 'GET' || judgesOrigins(routed)
        ? []
        : [
            [['host', own], ['origin', 'http://evil.example'], session, ...size] as const,
            [['host', own], ['origin', `http://${own}.evil.example`], session, ...size] as const,
            [['host', own], ['sec-fetch-site', 'cross-site'], session, ...size] as const,
            ...(takesAnyBody(routed)
              ? []
              : [[['host', own], session, ['content-type', 'text/plain'], ['content-length', '2']] as const]),
          ]),
    ]
    for (const headers of foreign) {
      const { status } = await rawRequest(daemon.url, `${head(method, path, headers)}{}`)
      if (headers.some(([name, value]) => name === 'origin' && value === 'null') && method === 'GET') {
        t.ok([403, 409].includes(status), `${call}: ${status}`)
        daemon.reached()
      } else t.ok(status === 403 || status === 415, `${call}: ${status} ${JSON.stringify(headers[0])}`)
    }
    t.same(daemon.reached(), [], call)
  }
})
