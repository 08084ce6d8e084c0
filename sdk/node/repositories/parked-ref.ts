/** The ref under which the branch of a conversation is kept that lists of branches no longer show. */
export const parkedRef = (branch: string): string =>
  `refs/sandbox/parked/${branch.replace(/^agent\//, '').replaceAll('/', '.')}`
