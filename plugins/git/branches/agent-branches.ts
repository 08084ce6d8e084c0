/** The branches of private copies are named by their conversations. */
const PREFIX = 'agent/'

/** The conversation in whose private copy a branch is checked out. */
export const conversationOfBranch = (branch: string): string | undefined =>
  branch.startsWith(PREFIX) && branch.length > PREFIX.length ? branch.slice(PREFIX.length) : undefined

/** The names that do not belong to conversations, which people limited to areas see. */
export const branchesOnly = (names: readonly string[]): string[] =>
  names.filter(name => conversationOfBranch(name) === undefined)
