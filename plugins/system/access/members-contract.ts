import type { tags } from 'typia'
import type { Member, MemberList } from '../../../sdk/kernel.js'
import type { Millis, Ok, Role, Text } from '../../../sdk/types.js'

/** An invitation just made: the code is in this answer only. */
export interface MadeInvitation {
  id: string
  code: string
  /** Where a sign-in page finds the code, in the fragment. */
  url: string
  expiresAt: Millis
}

/** Everybody with a role here after a grant, and the invitation it made. */
export interface Granted extends MemberList {
  invitation?: MadeInvitation
}

/** The members of the sandbox. */
export interface MemberCalls {
  /** List everybody with a role here, the owner first, and the open invitations without their codes. */
  'GET /members'(): MemberList

  /**
   * Grant a person a role, or create an invitation that grants it.
   *
   * With `email` it sets that person's role and replaces all their areas (a maintainer and the owner have none). Role
   * `owner` transfers ownership to a person who has signed in; the caller becomes a maintainer. Without `email` the
   * answer holds a one-time code, good for 7 days or until `expiresAt`, at most 30 days. A person loses access to what
   * they no longer reach at once.
   *
   * - 400: an e-mail not of the form local@domain, or an expiry that is not allowed
   * - 403: the caller is not the signed-in owner
   * - 404: an area is unknown
   * - 409: ownership for a person who never signed in
   * - 422: role `owner` without `email`, or the owner's own role
   * - 429: 50 invitations are open
   */
  'POST /members'(input: {
    email?: string & tags.MinLength<3> & tags.MaxLength<254>
    role: Role
    areas?: Text[] & tags.MaxItems<50>
    note?: string & tags.MaxLength<200>
    expiresAt?: Millis
  }): Granted

  /**
   * Remove a person's access, or withdraw an invitation.
   *
   * Their sessions and streams end within 1 s; turns they started continue. Callers below maintainer get empty lists.
   *
   * - 400: neither or both of `email` and `invitation`
   * - 403: another person's access, by a caller who is not the owner
   * - 404: not on the roster
   * - 409: the owner cannot leave
   */
  'DELETE /members'(input: { email?: Text; invitation?: Text }): MemberList

  /**
   * Give up one's own access: what `DELETE /members` does with one's own e-mail.
   *
   * - 403: the caller is not a signed-in person
   * - 404: the caller is not on the roster
   * - 409: the owner cannot leave
   */
  'DELETE /members/self'(): MemberList

  /** The roster, for another group. */
  'members.list'(): MemberList

  /** One person of the roster, for another group; absent: this e-mail has no role here. */
  'members.get'(input: { email: string }): { member?: Member }

  /** Whether anybody below maintainer may start turns, or ever might, for another group. */
  'members.drivers'(): { any: boolean }

  /** Replace the areas of several people in one step, for another group; without `areas` remove the limit. */
  'members.setAreas'(input: { people: { email: string; areas?: string[] }[] }): Ok
}
