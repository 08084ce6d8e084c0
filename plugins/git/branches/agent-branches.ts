/** The branches of private copies are named by their conversations. */
const PREFIX = 'agent/'

/** The conversation in whose private copy a branch is checked out. */
export const conversationOfBranch = (branch: string): string | undefined =>
  branch.startsWith(PREFIX) && branch.length > PREFIX.length ? branch.slice(PREFIX.length) : undefined

/** The names that are none of a conversation: what people limited to areas see. */
export const branchesOnly = (names: readonly string[]): string[] =>
  names.filter(name => conversationOfBranch(name) === undefined)
