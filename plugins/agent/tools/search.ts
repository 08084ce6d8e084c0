import { cut, MOST_RESULT, textContent } from './content.js'
import { done, tool } from './tool.js'

/** Searches the tree of the turn, and returns the lines that were found by file, the best file first. */
export const search = tool('Search', {
  category: 'search',
  describe: ({ query, dir }) => ({
    target: `${query}${dir === undefined ? '' : ` in ${dir}`}`.slice(0, 200),
    ...(dir !== undefined && { path: dir }),
  }),
  run: async ({ mode = 'find', ...asked }, { files }) => {
    const { groups, files: all, note } = await files.find({ mode, ...asked })
    const found = groups.map(({ path, hits }) =>
      mode === 'files' ? path : [path, ...hits.map(({ line, text }) => `  ${line}: ${text}`)].join('\n'),
    )
    const left = all - groups.length
    const text = [
      ...(all === 0 ? ['nothing was found'] : found),
      ...(left > 0 ? [`[${left} more files: search a folder, or for more]`] : []),
      ...(note === undefined ? [] : [`[${note}]`]),
    ].join('\n')
    return done(cut(text, MOST_RESULT), textContent(text))
  },
})
