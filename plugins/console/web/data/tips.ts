import type { AgentChanges, ExpectedTips } from '../../../agents/contract.js'

/** What a diff showed of each repository, as `expect` of a landing or a discard takes it. */
export const tipsOf = ({ repos }: AgentChanges): ExpectedTips =>
  Object.fromEntries(repos.map(({ repo, tip }) => [repo, tip]))
