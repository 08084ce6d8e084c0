import { join } from 'node:path'
import { plainText } from '../../../sdk/node/files/real-folders.js'

const MOST_FRAGMENT = 64 * 1024

/** The error in lines for the image: only `RUN` and `ENV` are allowed. */
export const wrongFragment = async (root: string, path: string): Promise<string | undefined> => {
  const text = await plainText(join(root, path), MOST_FRAGMENT)
  if (text === undefined) return undefined
  let goesOn = false
  for (const line of text.split('\n')) {
    const bare = line.trim()
    // A comment neither goes on nor ends what does.
    if (bare.startsWith('#')) continue
    const bad = !goesOn && bare !== '' && !/^(RUN|ENV)\s/i.test(bare)
    if (bad) return `${path} has the line ${JSON.stringify(bare.slice(0, 60))}: expected RUN and ENV lines alone`
    goesOn = bare.endsWith('\\')
  }
  return undefined
}
