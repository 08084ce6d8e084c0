/** The folders in which conversations have their branches; people may have some there too. */
const FOLDERS = /^(?:agent|sandbox-agent|sandbox-conversation)\//

/** Whether a branch may be that of a conversation, which people limited to areas do not see. */
export const isAgentBranch = (branch: string): boolean => FOLDERS.test(branch)

/** The names that cannot belong to conversations. */
export const branchesOnly = (names: readonly string[]): string[] => names.filter(name => !isAgentBranch(name))
