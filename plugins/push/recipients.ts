import { accessTo, type Host } from '../../sdk/index.js'
import type { Member } from '../../sdk/kernel.js'
import { limitsOf } from '../../sdk/node/access/access-view.js'
import { askReach } from '../../sdk/node/access/asked-reach.js'
import { LOCAL_OWNER } from '../../sdk/node/access/local-domain.js'
import type { PushMessage } from './contract.js'

type RecipientsHost = Pick<Host, 'call' | 'serves'>

/** Somebody who may have devices. */
export type PushPerson = Pick<Member, 'email' | 'role' | 'areas'>

/** The members, and the machine's own user while the sandbox has no owner. */
export const peopleOf = async (host: Pick<Host, 'call'>): Promise<PushPerson[]> => {
  const { members } = await host.call('members.list')
  return members.some(({ role }) => role === 'owner') ? members : [...members, { email: LOCAL_OWNER, role: 'owner' }]
}

/** The people a message is for, by its moment. */
export const concernedBy = (message: PushMessage, members: readonly PushPerson[]): PushPerson[] => {
  const { moment, startedBy, maintainers } = message
  const starter = members.find(({ email }) => email === startedBy)
  const isConcerned = ({ email, role }: PushPerson): boolean => {
    const isStarter = starter === undefined ? role === 'owner' : email === starter.email
    if (maintainers && role === 'maintainer') return true
    switch (moment) {
      case 'finished':
        return isStarter
      case 'stuck':
        return isStarter || role === 'owner'
      case 'approval':
        return role === 'owner' || role === 'maintainer'
    }
  }
  return members.filter(isConcerned)
}

/** Whether a member may see what a message is about. */
const maySee = async (
  host: RecipientsHost,
  { email, role, areas }: PushPerson,
  places: readonly string[] | undefined,
) => {
  const limits = limitsOf({ kind: 'session', role, ...(areas && { areas }) })
  if (limits === undefined) return true
  if (places === undefined) return false
  const reach = await askReach(host, limits, email)
  return places.every(place => accessTo(reach, place) !== undefined)
}

/** The e-mails of the people who are told: those concerned who may see it and do not watch now. */
export const recipientsOf = async (host: RecipientsHost, message: PushMessage): Promise<string[]> => {
  const concerned = concernedBy(message, await peopleOf(host))
  const seen = await Promise.all(concerned.map(member => maySee(host, member, message.within)))
  const { present } = await host.call('members.present')
  const watching = new Set(present.flatMap(({ email, idle }) => (idle ? [] : [email])))
  return concerned.flatMap(({ email }, at) => (seen[at] && !watching.has(email) ? [email] : []))
}
