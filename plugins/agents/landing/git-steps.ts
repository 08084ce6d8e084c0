import { ignored, refuse } from '../../../sdk/index.js'
import { bytesOfName } from '../../../sdk/node/byte-names.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { git, type GitAnswer, type GitOptions } from '../../../sdk/node/programs/git.js'
import { SANDBOX } from '../../../sdk/node/repositories/sandbox-identity.js'
import { gitFolders } from '../work/git-folders.js'
import type { FilterWall } from '../work/scratch-repo.js'

/** The move of HEAD of a checkout from one commit to another. */
export interface HeadStep {
  readonly from: string
  readonly to: string
}

/** What a landing changes in the git dir of a checkout once its files are in place. */
export interface GitSteps {
  readonly head?: HeadStep
  /** New files that git ignores and is to show all the same, as changes that are not staged. */
  readonly shown?: readonly string[]
}

const MESSAGE = 'sandbox: land the commits of a conversation'

/** Runs git in a person's checkout behind the wall, where neither hooks nor filters start. */
const inCheckout = (
  main: string,
  wall: FilterWall,
  args: readonly string[],
  options: Pick<GitOptions, 'ok' | 'input'> = {},
): Promise<GitAnswer> => {
  const folders = gitFolders(main) ?? refuse('conflict', `${main} is no repository any more: land again`)
  const exposed = [...new Set([folders.git, folders.common])].filter(path => contains(wall.data, path))
  return git(main, args, {
    ...options,
    identity: SANDBOX,
    priority: 'own',
    wall: { ...wall, exposed, offline: true },
    env: {
      GIT_DIR: folders.git,
      GIT_WORK_TREE: main,
      ...(folders.common !== folders.git && { GIT_COMMON_DIR: folders.common }),
      GIT_LITERAL_PATHSPECS: '1',
      GIT_NO_REPLACE_OBJECTS: '1',
    },
  })
}

/** Moves the entries of an index that differ between two commits; reads and writes no working file. */
const moveIndex = (main: string, wall: FilterWall, { from, to }: HeadStep, ...flags: string[]): Promise<GitAnswer> =>
  inCheckout(main, wall, ['read-tree', '-i', '-m', ...flags, from, to], { ok: [0, 128] })

/** Why HEAD of a checkout cannot move, in git's words; undefined: it can. */
export const headObstacle = async (main: string, wall: FilterWall, step: HeadStep): Promise<string | undefined> => {
  const { code, stderr } = await moveIndex(main, wall, step, '-n')
  return code === 0 ? undefined : (stderr.trim().split('\n')[0] ?? '').replace(/^(?:error|fatal): /, '').slice(0, 300)
}

/** Moves HEAD of a checkout, its branch and its index, but no working file: all of them or none. */
const moveHead = async (main: string, wall: FilterWall, step: HeadStep): Promise<void> => {
  const { from, to } = step
  const { code, stderr } = await moveIndex(main, wall, step)
  if (code !== 0) refuse('conflict', `the index of ${main} changed while it was landing: ${stderr.trim()}`)
  failpoint('agents.landing.indexed')
  try {
    await inCheckout(main, wall, ['update-ref', '-m', MESSAGE, 'HEAD', to, from])
  } catch (error) {
    await moveIndex(main, wall, { from: to, to: from }).catch(ignored('git says why it cannot write the index'))
    throw error
  }
}

/** Has git show ignored files as new ones; a file that it cannot add stays as it is, and the answer names it. */
const showIgnored = async (main: string, wall: FilterWall, paths: readonly string[]): Promise<void> => {
  const input = bytesOfName(paths.map(path => `${path}\0`).join(''))
  const args = ['add', '--intent-to-add', '--force', '--pathspec-from-file=-', '--pathspec-file-nul']
  await inCheckout(main, wall, args, { input, ok: [0, 1, 128] })
}

/** Carries out the git steps of a landing. */
export const takeGitSteps = async (main: string, wall: FilterWall, { head, shown = [] }: GitSteps): Promise<void> => {
  if (head) await moveHead(main, wall, head)
  if (shown.length > 0) await showIgnored(main, wall, shown)
}

/** Completes the git steps of an interrupted landing, unless the person has moved HEAD or the index since. */
export const recoverGitSteps = async (
  main: string,
  wall: FilterWall,
  { head, shown = [] }: GitSteps,
): Promise<void> => {
  const now = head && (await inCheckout(main, wall, ['rev-parse', '--verify', 'HEAD'], { ok: [0, 128] }))
  if (head && now?.text.trim() === head.from)
    await moveHead(main, wall, head).catch(ignored('then the work is in the files alone, and the commit lands no more'))
  // The index must not have files of the commit before HEAD has moved to it.
  if (shown.length > 0) await showIgnored(main, wall, shown)
}

/** Undoes the git steps of a landing. */
export const undoGitSteps = async (main: string, wall: FilterWall, { head, shown = [] }: GitSteps): Promise<void> => {
  const input = bytesOfName(shown.map(path => `${path}\0`).join(''))
  if (shown.length > 0) await inCheckout(main, wall, ['update-index', '--force-remove', '-z', '--stdin'], { input })
  if (head) await moveHead(main, wall, { from: head.to, to: head.from })
}
