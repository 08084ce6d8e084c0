const bare = (tag: string): string => tag.trim().replace(/^W\//, '')

/** Whether `if-none-match` names a tag or every one, by weak comparison (RFC 9110, section 13.1.2). */
export const namesTag = (ifNoneMatch: string | undefined, tag: string): boolean =>
  ifNoneMatch?.split(',').some(one => one.trim() === '*' || bare(one) === bare(tag)) ?? false
