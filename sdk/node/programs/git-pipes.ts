import { closeSync, constants, openSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { WallSpec } from '../wall/wall.js'
import type { Env } from './run.js'

/** Folders that a git reads: working trees, of which it opens few files by name, and git dirs. */
export interface GitPlaces {
  readonly trees: readonly string[]
  readonly gitdirs: readonly string[]
}

/** How long a git runs before somebody looks why; most end sooner. */
const FIRST_LOOK_MS = 3_000
const NEXT_LOOK_MS = 15_000
const PAUSE_MS = 10
/** A git that waits this long for pipes, whose other end somebody holds, is ended. */
const PATIENCE_MS = 30_000
const MOST_FOLDERS = 100_000
const MOST_PIPES = 1_000
/** What git opens by name in a working tree, whatever stands there. */
const OPENED = new Set(['.gitignore', '.gitattributes', '.gitmodules', '.mailmap'])
const AT_ONCE = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW

/** Commands that wait for another machine, and read no file of a working tree. */
const OVER_NETWORK = new Set(['clone', 'fetch', 'fetch-pack', 'ls-remote', 'push', 'send-pack'])

/** Where a git command reads that runs in a folder, as seen inside its wall where it has one. */
export const gitPlacesOf = (
  command: string,
  dir: string,
  env: Env,
  wall: Pick<WallSpec, 'workspace' | 'copy'> | undefined,
): GitPlaces => {
  const tree = wall?.copy ? join(wall.copy.dir, relative(wall.workspace, dir)) : dir
  const { GIT_DIR, GIT_COMMON_DIR, GIT_SHALLOW_FILE, GIT_WORK_TREE } = env
  const named = [GIT_DIR, GIT_COMMON_DIR, GIT_SHALLOW_FILE && dirname(GIT_SHALLOW_FILE)].filter(each => !!each)
  const ofCopy = wall?.copy?.gitdirs.flatMap(({ common, own }) => [common, own]) ?? [join(tree, '.git')]
  return {
    trees: OVER_NETWORK.has(command) ? [] : [...new Set([tree, ...(GIT_WORK_TREE && !wall ? [GIT_WORK_TREE] : [])])],
    gitdirs: [...new Set([...(named as string[]), ...ofCopy])],
  }
}

/** The pipes in a folder and below that fit; links are not followed. */
const pipesBelow = async (root: string, fits: (name: string) => boolean, signal: AbortSignal): Promise<string[]> => {
  const found: string[] = []
  const todo = [root]
  for (let folders = 0; todo.length > 0 && folders < MOST_FOLDERS; folders++) {
    if (signal.aborted || found.length >= MOST_PIPES) return found
    const folder = todo.pop()!
    try {
      for await (const entry of await opendir(folder)) {
        if (entry.isDirectory()) todo.push(join(folder, entry.name))
        else if (entry.isFIFO() && fits(entry.name)) found.push(join(folder, entry.name))
      }
    } catch {
      // It is gone or closed: git says so itself.
    }
  }
  return found
}

/** Ends the wait of those who opened a pipe: to them it is an empty file. It opens only where somebody waits. */
const passed = (pipe: string): void => {
  try {
    closeSync(openSync(pipe, AT_ONCE))
  } catch {
    // Nobody waits, or it is gone or closed.
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const over = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', over)
      resolve()
    }
    const timer = setTimeout(over, ms)
    if (signal.aborted) over()
    else signal.addEventListener('abort', over, { once: true })
  })

/**
 * Runs a git that no pipe in the place of one of its files holds up: such a file is empty for it.
 *
 * Somebody who keeps the other end open could hold it up all the same: then it is ended, and `held` gets the pipe.
 */
export const passingPipes = async <T>(
  { trees, gitdirs }: GitPlaces,
  held: (pipe: string) => void,
  work: () => Promise<T>,
): Promise<T> => {
  const over = new AbortController()
  const { signal } = over
  const look = async () => {
    for (let wait = FIRST_LOOK_MS; ; wait = NEXT_LOOK_MS) {
      await pause(wait, signal)
      if (signal.aborted) return
      const found = [
        ...(await Promise.all(trees.map(tree => pipesBelow(tree, name => OPENED.has(name), signal)))).flat(),
        ...(await Promise.all(gitdirs.map(gitdir => pipesBelow(gitdir, () => true, signal)))).flat(),
      ]
      if (found.length === 0) continue
      for (const end = performance.now() + PATIENCE_MS; performance.now() < end && !signal.aborted;) {
        for (const pipe of found) passed(pipe)
        await pause(PAUSE_MS, signal)
      }
      if (!signal.aborted) return held(found[0]!)
    }
  }
  const looking = look()
  try {
    return await work()
  } finally {
    over.abort()
    await looking
  }
}
