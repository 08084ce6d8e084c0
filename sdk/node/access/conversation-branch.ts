import { refuse } from '../../refusal.js'

/** The branch of a conversation; refuses a conversation in the shared tree, which has none to compare or land. */
export const requireBranch = (
  { id, branch }: { readonly id: string; readonly branch?: string },
  instead: string,
): string => branch ?? refuse('unprocessable', `${id} works in the shared tree and has no branch: ${instead}`)
