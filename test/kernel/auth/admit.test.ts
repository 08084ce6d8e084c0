import t from 'tap'
import { admit } from '../../../kernel/auth/admit.js'
import type { RouteAccess } from '../../../kernel/manifest.js'
import type { Caller, CallerKind, Role, Scope } from '../../../sdk/types.js'
import { refusalOf } from './memory.js'

const ROLES: Role[] = ['viewer', 'collaborator', 'maintainer', 'owner']
const SCOPES: Scope[] = ['editor', 'read', 'drive', 'land']
const ROLE_OF: { [scope in Scope]: Role } = {
  editor: 'collaborator',
  read: 'viewer',
  drive: 'collaborator',
  land: 'maintainer',
}

const person = (role: Role, kind: CallerKind = 'session'): Caller => ({ kind, actor: 'a@b.c', role })
const token = (scope: Scope): Caller => ({ kind: 'token', actor: 'token:x', role: ROLE_OF[scope], scope })
const route = (role: Role, tokens: Scope[]): RouteAccess => ({ id: 'group.call', role, tokens })

/** Every set of scopes a route could name. */
const SETS = Array.from({ length: 16 }, (_, bits) => SCOPES.filter((_scope, at) => bits & (1 << at)))

t.test('a person is admitted from the least role on, regardless of scopes', async t => {
  for (const [have, role] of ROLES.entries()) {
    for (const [needed, floor] of ROLES.entries()) {
      for (const tokens of SETS) {
        if (have >= needed) t.equal(admit(person(role), route(floor, tokens)).role, role)
        else
          t.match(await refusalOf(() => admit(person(role), route(floor, tokens))), {
            status: 403,
            message: `needs role ${floor}, found role ${role}`,
          })
      }
    }
  }
})

t.test('a control token is admitted by its scope alone, regardless of the least role', async t => {
  for (const scope of SCOPES) {
    for (const floor of ROLES) {
      for (const tokens of SETS) {
        if (tokens.includes(scope)) {
          t.equal(admit(token(scope), route(floor, tokens)).scope, scope)
          continue
        }
        const refusal = await refusalOf(() => admit(token(scope), route(floor, tokens)))
        t.equal(refusal.status, 403)
        t.match(refusal.message, `found scope ${scope}`)
        t.match(refusal.message, tokens.length ? tokens.join(' or ') : 'control tokens cannot make the call')
      }
    }
  }
})

t.test('a run reaches the same calls as its starter, except the trust surface', async t => {
  t.equal(admit(person('maintainer', 'run'), route('viewer', ['read'])).kind, 'run')
  t.match(await refusalOf(() => admit(person('owner', 'run'), route('viewer', []))), {
    status: 403,
    message: 'runs cannot make the call',
  })
  t.match(await refusalOf(() => admit(person('viewer', 'run'), route('maintainer', ['land']))), { status: 403 })
})

t.test('an extension reaches the calls of its role; its permissions are checked before', async t => {
  t.equal(admit(person('collaborator', 'extension'), route('viewer', [])).kind, 'extension')
  t.match(await refusalOf(() => admit(person('collaborator', 'extension'), route('maintainer', []))), { status: 403 })
})

t.test('no other kind of caller is admitted by a route', async t => {
  t.match(await refusalOf(() => admit(person('owner', 'plugin'), route('viewer', SCOPES))), {
    status: 403,
    message: 'kind plugin',
  })
})

t.test('a turn is admitted where the route and its reach say so, whatever role it would have', async t => {
  const turn = { ...person('owner', 'turn'), tokenId: 'x' }
  const wide = { ...turn, turn: { sandbox: true, accounts: true } }
  const narrow = { ...turn, turn: { sandbox: false, accounts: true } }
  const [plain, own, network] = [
    route('viewer', SCOPES),
    { ...route('maintainer', []), turns: true as const },
    { ...route('maintainer', []), turns: 'sandbox' as const },
  ]
  for (const caller of [turn, narrow]) {
    t.equal(admit(caller, own), caller)
    for (const closed of [plain, network])
      t.match(await refusalOf(() => admit(caller, closed)), {
        status: 403,
        message: /lacks the power.*POST \/approvals/,
      })
  }
  t.equal(admit(wide, own), wide)
  t.equal(admit(wide, network), wide)
  const { actor } = turn
  t.same(admit(wide, plain), { kind: 'token', actor, role: 'viewer', scope: 'read', tokenId: 'x' }, 'as a reader')
  for (const closed of [route('viewer', []), route('viewer', ['drive', 'land'])])
    t.match(await refusalOf(() => admit(wide, closed)), { status: 403, message: 'a turn cannot make the call' })
})

t.test('a token without a scope reaches nothing', async t => {
  t.match(await refusalOf(() => admit({ kind: 'token', actor: 'token:x', role: 'owner' }, route('viewer', SCOPES))), {
    status: 403,
  })
})
