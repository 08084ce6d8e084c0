import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { git } from '../../../sdk/node/programs/git.js'
import { parkedRef } from '../../../sdk/node/repositories/parked-ref.js'
import { branchTip, packedRefs } from './refs.js'

/** The branch of a conversation, unless a ref of somebody else is in its way. */
export const usualBranch = (id: string): string => `agent/${id}`

/** Folders of branches. Git has no room for one beside a branch of its name. */
const FOLDERS = ['agent', 'sandbox-agent', 'sandbox-conversation']
const MOST_TRIES = 100

/**
 * The branch for a new conversation: the first name that is free in all of these git dirs, as a branch and as a ref of
 * an archived conversation. What is in the way belongs to people, to other programs, or to another sandbox.
 */
export const freeBranch = async (id: string, commons: readonly string[]): Promise<string> => {
  for (const folder of FOLDERS) {
    const above = await Promise.all(commons.map(common => branchTip(common, folder)))
    if (above.some(tip => tip !== undefined)) continue
    for (let number = 1; number <= MOST_TRIES; number++) {
      const branch = number === 1 ? `${folder}/${id}` : `${folder}/${id}-${number}`
      const refs = [`refs/heads/${branch}`, parkedRef(branch)]
      const taken = await Promise.all(commons.flatMap(common => refs.map(ref => isTaken(common, ref))))
      if (!taken.includes(true)) return branch
    }
  }
  throw new Error(`no name is free for the branch of ${id}`)
}

/** Whether a git dir has this ref, or one below it. */
const isTaken = async (common: string, ref: string): Promise<boolean> => {
  const packed = packedRefs(common)
  if (packed !== undefined)
    return packed.includes(` ${ref}\n`) || packed.includes(` ${ref}/`) || holdsFiles(join(common, ref))
  // Refs that are not kept as files: git knows them.
  const { text } = await git(common, ['for-each-ref', '--count=1', '--format=%(refname)', ref], {
    env: { GIT_DIR: common },
  })
  return text !== ''
}

/** Whether a path is anything but a folder with nothing in it; git leaves such folders behind. */
const holdsFiles = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isDirectory()) return found !== undefined
  for (const name of await readdir(path)) if (await holdsFiles(join(path, name))) return true
  return false
}
