import { refuse } from '../../sdk/refusal.js'
import type { Caller } from '../../sdk/types.js'
import type { RouteAccess } from '../manifest.js'
import { RANK } from './book.js'

/**
 * Returns the caller if it may use the route; otherwise refuses and says what is needed. All access is decided here.
 */
export const admit = (caller: Caller, access: RouteAccess): Caller => {
  const { id, role, tokens, only } = access
  const needed = only ? 'only extensions whose manifest names it can' : `sign in as ${role}`
  switch (caller.kind) {
    case 'session':
      if (only) return refuse('forbidden', `people cannot make the call ${id}; ${needed}`)
      return ranked(caller, access)
    case 'extension':
      return ranked(caller, access)
    case 'token':
      if (caller.scope && tokens.includes(caller.scope)) return caller
      return refuse(
        'forbidden',
        tokens.length
          ? `${id} needs a control token of scope ${tokens.join(' or ')}, found scope ${caller.scope}`
          : `control tokens cannot make the call ${id}, found scope ${caller.scope}; ${needed}`,
      )
    case 'run':
      if (tokens.length) return ranked(caller, access)
      return refuse('forbidden', `runs cannot make the call ${id}; ${needed}`)
    case 'turn':
      return admitTurn(caller, access)
    default:
      return refuse('forbidden', `callers of kind ${caller.kind} cannot make the call ${id}; ${needed}`)
  }
}

/** A turn reads like a control token of scope `read`, so that it sees no more than one. */
const admitTurn = (caller: Caller, { id, tokens, turns }: RouteAccess): Caller => {
  if (turns === true) return caller
  const reads = tokens.includes('read')
  if (caller.turn?.sandbox) {
    if (turns === 'sandbox') return caller
    if (reads) return readerOf(caller)
  }
  const power =
    turns === 'sandbox' || reads ? ', or lacks the power to (sandbox, of a persona or of who spoke in it)' : ''
  return refuse(
    'forbidden',
    `a turn cannot make the call ${id}${power}; propose it at POST /approvals, so that a person decides`,
  )
}

const readerOf = ({ actor, tokenId }: Caller): Caller => ({
  kind: 'token',
  actor,
  role: 'viewer',
  scope: 'read',
  ...(tokenId !== undefined && { tokenId }),
})

const ranked = (caller: Caller, { id, role }: RouteAccess): Caller =>
  RANK[caller.role] >= RANK[role] ? caller : refuse('forbidden', `${id} needs role ${role}, found role ${caller.role}`)
