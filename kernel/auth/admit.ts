import { refuse } from '../../sdk/refusal.js'
import type { Caller, Role } from '../../sdk/types.js'
import type { RouteAccess } from '../manifest.js'

const RANK: { readonly [role in Role]: number } = { viewer: 0, collaborator: 1, maintainer: 2, owner: 3 }

/** Lets a caller through to a route, or refuses with what would do: the one place where reach is decided. */
export const admit = (caller: Caller, access: RouteAccess): Caller => {
  const { id, role, tokens } = access
  const signIn = `it takes a signed-in ${role}`
  switch (caller.kind) {
    case 'session':
      return ranked(caller, access)
    case 'token':
      if (caller.scope && tokens.includes(caller.scope)) return caller
      return refuse(
        'forbidden',
        tokens.length
          ? `${id} takes a control token of scope ${tokens.join(' or ')}, found scope ${caller.scope}`
          : `${id} is on the trust surface, which no control token reaches, found scope ${caller.scope}: ${signIn}`,
      )
    case 'run':
      if (tokens.length) return ranked(caller, access)
      return refuse('forbidden', `${id} is on the trust surface, which no run reaches: ${signIn}`)
    default:
      return refuse('forbidden', `${id} is out of reach of a caller of kind ${caller.kind}: ${signIn}`)
  }
}

const ranked = (caller: Caller, { id, role }: RouteAccess): Caller =>
  RANK[caller.role] >= RANK[role] ? caller : refuse('forbidden', `${id} takes role ${role}, found role ${caller.role}`)
