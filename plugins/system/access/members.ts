import type { Handlers } from '../../../sdk/contract.js'
import { type Caller, type Context, type Host, type Input, refuse } from '../../../sdk/index.js'
import type { MemberList } from '../../../sdk/kernel.js'
import { record } from '../../../sdk/node/record/record.js'
import type { System } from '../contract.js'
import type { Drivers } from './drivers.js'
import { httpRequestOf } from '../request.js'
import { plainEmail } from './email.js'
import type { Granted, MemberCalls } from './members-contract.js'
import { plainValue } from './plain.js'

type MembersHost = Pick<Host, 'call' | 'emit' | 'serves' | 'log' | 'store'>
type Asked = Input<System, 'POST /members'>

/** Publishes that the roster changed. */
type Changed = (domain: 'members' | 'sessions') => Promise<unknown>

/** The calls that grant and remove access. */
export const memberCalls = (host: MembersHost, changed: Changed, drivers: Drivers): Handlers<MemberCalls> => {
  const leave = async (email: string, context: Context): Promise<MemberList> => {
    const { caller } = context
    const { members } = await host.call('kernel.members.list')
    const own = email === caller.email
    if (!own && !isOwner(caller)) refuse('forbidden', 'only the owner removes the access of others')
    if (!members.some(one => one.email === email))
      refuse('not-found', `expected a member of the roster, found no ${email.slice(0, 80)}`)
    await host.call('kernel.members.remove', { email })
    host.emit('member.removed', { email })
    await record(host, { type: 'member.removed', extra: { email } }, context)
    await changed('members')
    await changed('sessions')
    return own ? { members: [], invitations: [] } : shownTo(host, caller)
  }
  return {
    'GET /members': () => host.call('kernel.members.list'),
    'POST /members': async (asked, context) => {
      ownerOnly(context.caller)
      if (asked.role === 'viewer' || asked.role === 'collaborator') await assertAreas(host, asked.areas ?? [])
      const made =
        asked.email === undefined
          ? { invitation: await invite(host, asked, context) }
          : await grant(host, asked.email, asked, context)
      await drivers.any()
      await changed('members')
      return { ...(await host.call('kernel.members.list')), ...made }
    },
    'DELETE /members': async ({ email, invitation }, context) => {
      if ((email === undefined) === (invitation === undefined)) {
        return refuse(
          'invalid',
          `expected one of email and invitation, found ${email === undefined ? 'neither' : 'both'}`,
        )
      }
      if (email !== undefined) return leave(email.toLowerCase(), context)
      if (!isOwner(context.caller)) refuse('forbidden', 'only the owner withdraws an invitation')
      await host.call('kernel.members.remove', { invitation: invitation! })
      await record(host, { type: 'invitation.withdrawn', extra: { id: invitation } }, context)
      await changed('members')
      return shownTo(host, context.caller)
    },
    'DELETE /members/self': (_, context) =>
      leave(context.caller.email ?? refuse('forbidden', 'it takes a signed-in person'), context),
    'members.list': () => host.call('kernel.members.list'),
    'members.drivers': async () => ({ any: await drivers.any() }),
    'members.get': async ({ email }) => {
      const { members } = await host.call('kernel.members.list')
      const member = members.find(one => one.email === email.toLowerCase())
      return member ? { member } : {}
    },
    'members.setAreas': async asked => {
      const people = asked.people.map(({ email, ...rest }) => ({ ...rest, email: email.toLowerCase() }))
      await host.call('kernel.members.limit', { people })
      for (const { email } of people) host.emit('member.changed', { email })
      await changed('members')
      return { ok: true }
    },
  }
}

const isOwner = ({ kind, role }: Caller): boolean => kind === 'session' && role === 'owner'

const ownerOnly = (caller: Caller): void => {
  if (!isOwner(caller))
    refuse(
      'forbidden',
      `a session of the owner grants roles, found a caller of kind ${caller.kind} and role ${caller.role}`,
    )
}

const grant = async (
  host: MembersHost,
  given: string,
  { role, areas, expiresAt }: Asked,
  context: Context,
): Promise<{}> => {
  const errors = [{ path: 'email', expected: 'an e-mail of the form local@domain' }]
  const email =
    plainEmail(given)
    ?? refuse('invalid', 'email: expected an e-mail of the form local@domain, found another', { errors })
  if (expiresAt !== undefined) {
    refuse('invalid', 'expiresAt: only an invitation expires, a grant with email does not', {
      errors: [{ path: 'expiresAt', expected: 'nothing beside email' }],
    })
  }
  await host.call('kernel.members.grant', { email, role, by: context.caller.actor, ...(areas && { areas }) })
  host.emit('member.changed', { email })
  const type = role === 'owner' ? 'owner.transferred' : 'member.granted'
  await record(host, { type, extra: { email, role, ...(areas && { areas }) } }, context)
  return {}
}

const invite = async (
  host: MembersHost,
  { role, areas, note, expiresAt }: Asked,
  context: Context,
): Promise<Granted['invitation'] & {}> => {
  const { base } = httpRequestOf(context)
  const shown = plainValue(note ?? '')
  const asked = {
    role,
    by: context.caller.actor,
    ...(areas && { areas }),
    ...(shown && { note: shown }),
    ...(expiresAt !== undefined && { expiresAt }),
  }
  const made = await host.call('kernel.members.invite', asked)
  await record(
    host,
    { type: 'invitation.made', extra: { id: made.id, role, ...(areas && { areas }), ...(shown && { note: shown }) } },
    context,
  )
  return { ...made, url: `${base}/#invite=${made.code}` }
}

/** Refuses unknown areas. */
const assertAreas = async (host: MembersHost, ids: string[]): Promise<void> => {
  if (!ids.length) return
  const { unknown } = (await host.serves('areas.known')) ? await host.call('areas.known', { ids }) : { unknown: ids }
  if (unknown.length)
    refuse(
      'not-found',
      `expected areas of this sandbox, found none called ${unknown
        .slice(0, 5)
        .map(id => JSON.stringify(id.slice(0, 40)))
        .join(', ')}`,
    )
}

/** Callers who may not read the roster get empty lists. */
const shownTo = async (host: MembersHost, { role }: Caller): Promise<MemberList> =>
  role === 'owner' || role === 'maintainer' ? host.call('kernel.members.list') : { members: [], invitations: [] }
