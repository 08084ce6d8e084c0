import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Role, Scope } from '../../../sdk/types.js'
import { guarded, needsOrigin, ROUTED, type Guarded } from '../calls.js'
import { accessLinesFile, type AccessLine } from './access-lines.js'

const ROLES = ['viewer', 'collaborator', 'maintainer', 'owner'] as const
const SCOPES: readonly Scope[] = ['editor', 'read', 'drive', 'land']
/** Calls that check no general credential. */
const own = (access: (typeof ROUTED)[number]['access']): boolean => 'open' in access
/** Calls that programs of extensions alone make. */
const onlyExtensions = (access: (typeof ROUTED)[number]['access']): boolean => 'only' in access
/** Open in the contract because turns make these calls too: their manifests say so beside the role of people. */
const PEOPLE_AND_TURNS: ReadonlySet<string> = new Set(['capabilities.otp'])

const lines = new Map(
  (JSON.parse(readFileSync(accessLinesFile, 'utf8')) as AccessLine[]).map(line => [
    line.id,
    PEOPLE_AND_TURNS.has(line.id) ? { ...line, floor: 'maintainer' as const } : line,
  ]),
)
const served = ROUTED.map(routed => ({ ...routed, line: lines.get(routed.access.id)! }))

const context = {
  caller: { kind: 'session', actor: 'x', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** A session of a person with a role. */
const sessionOf = async ({ auth }: Guarded, role: Role): Promise<string> => {
  if (role === 'owner') return auth.openLocal('matrix').token
  const { code } = await auth.handlers['kernel.members.invite']({ role, by: 'x' }, context)
  const { session } = await auth.handlers['kernel.session.open'](
    { invite: code, name: role, device: 'matrix', address: '127.0.0.1' },
    context,
  )
  return session.token
}

const asked = async (
  daemon: Guarded,
  { method, path }: (typeof ROUTED)[number],
  headers: { [name: string]: string },
) => {
  const body = method === 'GET' ? {} : { body: '{}', headers: { 'content-type': 'application/json', ...headers } }
  const response = await fetch(daemon.url + path, { method, headers, ...body })
  const { message } = (await response.json()) as { message: string }
  return { status: response.status, message, reached: daemon.reached() }
}

t.test('every served call has its line in the written contract, and the manifests agree', async t => {
  for (const { call, access, line } of served) {
    t.ok(line, `${access.id} is in the contract`)
    if (!line) continue
    t.equal(call, line.call)
    const floor = own(access) || onlyExtensions(access) ? 'open' : (access as { role: Role }).role
    t.equal(floor, line.floor, `${call}: floor`)
    t.same('open' in access ? [] : [...access.tokens].sort(), [...line.tokens].sort(), `${call}: tokens`)
  }
})

t.test('each role reaches exactly the calls whose floor it has, and refusals name the needed role', async t => {
  const daemon = await guarded(t)
  for (const [rank, role] of ROLES.entries()) {
    const headers = { authorization: `Bearer ${await sessionOf(daemon, role)}` }
    for (const routed of served.filter(({ access }) => !own(access))) {
      const { floor } = routed.line
      const { status, message, reached } = await asked(daemon, routed, headers)
      if (onlyExtensions(routed.access)) {
        t.same([status, reached], [403, []], `${role} ${routed.call}`)
        t.match(message, 'people cannot make the call')
      } else if (floor === 'open' || ROLES.indexOf(floor) <= rank)
        t.same([status, reached], [409, [routed.call]], `${role} ${routed.call}`)
      else {
        t.same([status, reached], [403, []], `${role} ${routed.call}`)
        t.match(message, `needs role ${floor}, found role ${role}`)
      }
    }
  }
})

t.test(
  'each scope reaches exactly the calls whose token line names it, and refusals name the needed scope, if any',
  async t => {
    const daemon = await guarded(t)
    for (const scope of SCOPES) {
      const { token } = await daemon.token(scope)
      for (const routed of served.filter(({ access }) => !own(access))) {
        const { tokens } = routed.line
        const { status, message, reached } = await asked(daemon, routed, { 'x-sandbox-control': token })
        if (tokens.includes(scope)) t.same([status, reached], [409, [routed.call]], `${scope} ${routed.call}`)
        else {
          t.same([status, reached], [403, []], `${scope} ${routed.call}`)
          const who = onlyExtensions(routed.access) ? 'only extensions' : 'sign in as'
          for (const one of tokens.length ? tokens : ['control tokens cannot', who]) t.match(message, one)
        }
      }
    }
  },
)

/** What every turn does with its own credential, and what it asks for with the power `sandbox`. */
const EVERY_TURN = ['approvals.propose', 'capabilities.otp', 'needs.raise']
const NETWORK = [
  ...['disks.list', 'disks.mount', 'disks.unmount', 'exit.check', 'exit.countries', 'exit.list', 'exit.rotate'],
  ...['exit.start', 'exit.stop', 'exit.use', 'vpn.connect', 'vpn.disconnect', 'vpn.list'],
]

t.test('a turn reaches exactly the calls that its manifest line and its power let turns make', async t => {
  const daemon = await guarded(t)
  const { handlers } = daemon.auth
  const reachedWith = async (token: string) => {
    const found: string[] = []
    for (const routed of served.filter(({ access }) => !own(access))) {
      const { status, message, reached } = await asked(daemon, routed, { 'x-sandbox-turn': token })
      if (status === 409) found.push(routed.access.id)
      else {
        t.same([status, reached], [403, []], routed.call)
        t.match(message, 'propose it at POST /approvals')
      }
    }
    return found.sort()
  }
  const plain = await handlers['kernel.turn.mint']({ conversationId: 'c' }, context)
  t.same(await reachedWith(plain.token), EVERY_TURN)
  const reach = { sandbox: true, accounts: true }
  const wide = await handlers['kernel.turn.mint']({ conversationId: 'c', reach }, context)
  const reads = served.filter(({ line }) => line.tokens.includes('read')).map(({ access }) => access.id)
  t.same(await reachedWith(wide.token), [...EVERY_TURN, ...NETWORK, ...reads].sort())
  await handlers['kernel.turn.narrow']({ id: wide.id }, context)
  t.same(await reachedWith(wide.token), EVERY_TURN, 'after a stranger spoke in it')
})

t.test('without a credential only open calls answer', async t => {
  const daemon = await guarded(t)
  for (const routed of served) {
    const { status, reached } = await asked(daemon, routed, {})
    if (!own(routed.access)) t.same([status, reached], [401, []], routed.call)
    // A download needs its ticket first, a socket an upgrade request.
    else if ('ticket' in routed.access)
      t.ok((status === 401 || status === 426) && !reached.length, `${routed.call}: ${status}`)
    // A page of a site that is admitted makes it, and no other program.
    else if (needsOrigin(routed)) t.same([status, reached], [403, []], routed.call)
    else t.same([status, reached], [409, [routed.call]], routed.call)
  }
})
