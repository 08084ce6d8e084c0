import { refuse } from '../../refusal.js'

/** The branch of a conversation; one that works in the shared tree has none to compare or land, and is refused. */
export const requireBranch = (
  { id, branch }: { readonly id: string; readonly branch?: string },
  instead: string,
): string =>
  branch ?? refuse('unprocessable', `${id} works in the shared tree and has no branch of its own: ${instead}`)
