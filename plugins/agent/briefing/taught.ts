import type { TurnNote } from '../turn/frames/frames.js'

/** Name the texts below: change a name with its text. */
export const SEARCH_TEXT = 'search-1'
export const TERSE_TEXT = 'terse-1'

/** Teaches the search tool. */
export const SEARCH_NOTE: TurnNote = {
  title: 'Search',
  text:
    'Find things with the tool Search before you list folders, read whole files or run grep or find.\n'
    + '- mode find (left out): lines by a text or regular expression; literal takes the query as it is.\n'
    + '- mode files: files by name; *, ? and ** make a pattern, such as **/*.test.ts.\n'
    + '- mode ast: code of a shape, such as foo($A, $$$) or class $NAME { $$$ }.\n'
    + 'Narrow a search with dir and include. The best file comes first: read the lines around a hit with offset and '
    + 'limit of Read. Ask for several independent searches at once.',
}

/** Asks for short answers, in this turn alone: a later turn may be one that is not asked. */
export const TERSE_NOTE: TurnNote = {
  title: 'Short answers',
  text:
    'In this turn, say only what counts. No introduction, no repetition of the request, no summary of what the tools '
    + 'showed, no praise, no offers. Do the work as thoroughly as always; report the result in as few plain sentences '
    + 'as it takes, and every problem you found.',
}
