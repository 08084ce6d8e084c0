import { cut, MOST_RESULT } from './content.js'
import { done, tool } from './tool.js'

const MOST_FILES = 100

/** Returns the text of a skill that was offered to the turn, or a file beside it. */
export const skill = tool('Skill', {
  category: 'read',
  describe: ({ name, file }) => ({ target: file === undefined ? name : `${name}: ${file}` }),
  run: async ({ name, file }, { skill: read }) => {
    const { text, files, folder } = await read(name, file)
    const beside = files.slice(0, MOST_FILES).map(({ path, size }) => `- ${path} (${size} bytes)`)
    const where = folder === undefined ? '' : `, in ${folder}`
    const list = beside.length > 0 ? `\n\nFiles beside it${where}:\n${beside.join('\n')}` : ''
    return done(cut(text + list, MOST_RESULT))
  },
})
