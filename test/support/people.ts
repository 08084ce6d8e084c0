import type { Api } from '../../sdk/api.js'
import type { Handlers } from '../../sdk/contract.js'
import type { Member } from '../../sdk/kernel.js'
import { createClient, type Client } from '../../sdk/client.js'
import type { Caller, Role } from '../../sdk/types.js'
import type { Support } from './daemon.js'

type MemberCalls = Pick<Handlers<Api>, 'members.list' | 'members.get' | 'members.setAreas'>

/** A roster in memory and its people's sessions; each request reads the current role and areas. */
export class People {
  readonly members = new Map<string, Member>()

  /** Fakes for the calls of the member table. */
  readonly fakes: MemberCalls = {
    'members.list': () => ({ members: [...this.members.values()].map(member => ({ ...member })), invitations: [] }),
    'members.get': ({ email }) => {
      const member = this.members.get(email)
      return member ? { member: { ...member } } : {}
    },
    'members.setAreas': ({ people }) => {
      for (const { email, areas } of people) {
        const { areas: _before, ...member } = this.members.get(email)!
        this.members.set(email, { ...member, ...(areas && { areas }) })
      }
      return { ok: true }
    },
  }

  add(email: string, role: Role, areas?: string[]): void {
    this.members.set(email, {
      email,
      role,
      grantedBy: 'owner@sandbox.local',
      grantedAt: 1,
      bound: true,
      ...(areas && { areas }),
    })
  }

  /** Registers a bearer for each person of the roster. */
  admit(daemon: Pick<Support, 'auth'>): void {
    const auth = daemon.auth as { authenticate: Support['auth']['authenticate'] }
    const others = auth.authenticate.bind(auth)
    auth.authenticate = (credential, address) => {
      const member = credential.kind === 'bearer' ? this.members.get(credential.value) : undefined
      return member ? callerOf(member) : others(credential, address)
    }
  }
}

const callerOf = ({ email, role, areas }: Member): Caller => ({
  kind: 'session',
  actor: email,
  role,
  sessionId: `s-${email}`,
  email,
  ...(areas && (role === 'viewer' || role === 'collaborator') && { areas }),
})

/** The client of a person on the roster. */
export const clientOf = ({ url }: Pick<Support, 'url'>, email: string): Client =>
  createClient({ url, session: email, retry: { attempts: 0 } })
