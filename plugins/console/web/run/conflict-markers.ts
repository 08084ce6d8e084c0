const OPENING = /^<{7}(?: |$)/
const MIDDLE = /^={7}$/
const BASE = /^\|{7}(?: |$)/
const CLOSING = /^>{7}(?: |$)/

/** The text with both versions of each conflict, ours first; nothing where its markers are broken or missing. */
export const withBothSides = (text: string): string | undefined => {
  const kept: string[] = []
  let state: 'outside' | 'ours' | 'base' | 'theirs' = 'outside'
  let found = false
  for (const line of text.split('\n')) {
    const bare = line.replace(/\r$/, '')
    if (state === 'outside' && OPENING.test(bare)) {
      state = 'ours'
      found = true
    } else if (state === 'ours' && BASE.test(bare)) state = 'base'
    else if ((state === 'ours' || state === 'base') && MIDDLE.test(bare)) state = 'theirs'
    else if (state === 'theirs' && CLOSING.test(bare)) state = 'outside'
    else if (state !== 'base') kept.push(line)
  }
  return found && state === 'outside' ? kept.join('\n') : undefined
}
