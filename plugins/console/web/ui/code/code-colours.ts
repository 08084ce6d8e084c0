import { tagHighlighter, tags } from '@lezer/highlight'

/** The classes of coloured code. */
export const codeColours = tagHighlighter([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], class: 'tok-keyword' },
  { tag: [tags.string, tags.regexp, tags.special(tags.string)], class: 'tok-string' },
  { tag: [tags.comment], class: 'tok-comment' },
  { tag: [tags.number, tags.bool, tags.null], class: 'tok-number' },
])
