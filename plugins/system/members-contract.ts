import type { Millis, Ok, Role } from '../../sdk/types.js'

/** Somebody who may sign in. */
export interface Member {
  email: string
  role: Role
  /** The areas the person is limited to; absent: the whole workspace. */
  areas?: string[]
  name?: string
  picture?: string
  grantedBy: string
  grantedAt: Millis
  lastSeenAt?: Millis
  /** Has signed in, so that nobody else can under this e-mail. */
  bound: boolean
}
/** A one-time code that makes whoever redeems it a member. */
export interface Invitation {
  id: string
  role: Exclude<Role, 'owner'>
  areas?: string[]
  note?: string
  createdBy: string
  createdAt: Millis
  expiresAt: Millis
}

/** Who has a role here. */
export interface MembersCalls {
  /** The roster, owner first, with open invitations. */
  'members.list'(): { members: Member[]; invitations: Invitation[] }
  /** One person of the roster. */
  'members.get'(input: { email: string }): { member?: Member }
  /** Limits a person to areas; without them to nothing but the whole workspace. */
  'members.setAreas'(input: { email: string; areas?: string[] }): Ok
}
