import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { workspaceServedFrom } from './data-format.js'
import { readPlain } from './files.js'

/** Where daemons keep their data unless told otherwise: one folder a workspace below it. No turn sees it. */
export const stateFolder = (env: NodeJS.ProcessEnv): string => {
  const base = env.XDG_STATE_HOME
  return join(base && isAbsolute(base) ? base : join(homedir(), '.local', 'state'), 'sandbox')
}

/** Below the state folder: a file for each data folder that lies elsewhere. */
const ELSEWHERE = 'elsewhere'
/** Beside such a file: which view of the file system its daemon had. */
const VIEW = '.view'
/** A note of a daemon with another view is kept this long after its last start. */
const MOST_AGE_MS = 90 * 24 * 3_600_000

/**
 * Notes a data folder that lies elsewhere, so that the command line finds its daemon; those that are gone are
 * forgotten. A daemon with another view of the file system, such as a `/tmp` of its own, decides nothing: what it does
 * not see may be there. Returns a sentence for each other data folder whose daemon worked on the workspace.
 */
export const noteDataFolder = (
  env: NodeJS.ProcessEnv,
  { data, workspace }: { readonly data: string; readonly workspace: string },
): string[] => {
  const state = stateFolder(env)
  if (dirname(data) !== state) noteElsewhere(join(state, ELSEWHERE), data)
  return dataFolders(state)
    .filter(other => other !== data && workspaceServedFrom(other) === workspace)
    .map(other => `the data folder ${other} is of this workspace too: its conversations are not shown here`)
}

const noteElsewhere = (notes: string, data: string): void => {
  try {
    mkdirSync(notes, { recursive: true, mode: 0o700 })
    const view = viewNow()
    for (const name of readdirSync(notes)) {
      const note = join(notes, name)
      const noted = isNote(name) ? readPlain(note) : undefined
      if (!noted || existsSync(noted)) continue
      const isMine = readPlain(`${note}${VIEW}`) === view
      if (!isMine && Date.now() - statSync(note).mtimeMs < MOST_AGE_MS) continue
      for (const file of [note, `${note}${VIEW}`]) rmSync(file, { force: true })
    }
    const note = join(notes, createHash('sha256').update(data).digest('hex').slice(0, 16))
    if (view !== undefined) writeFileSync(`${note}${VIEW}`, view, { mode: 0o600 })
    writeFileSync(note, data, { mode: 0o600 })
  } catch {
    // Its daemon is found by --data.
  }
}

/** The mount namespace of this process, which decides what lies at a path; undefined: the system has none. */
const viewNow = (): string | undefined => {
  try {
    return readlinkSync('/proc/self/ns/mnt')
  } catch {
    return undefined
  }
}

const isNote = (name: string): boolean => /^[0-9a-f]{16}$/.test(name)

/** Every data folder below a state folder, and those that were noted there. */
export const dataFolders = (state: string): string[] => {
  const below = (folder: string): string[] => {
    try {
      return readdirSync(folder)
        .filter(isNote)
        .map(name => join(folder, name))
    } catch {
      return []
    }
  }
  return [...below(state), ...below(join(state, ELSEWHERE)).flatMap(note => readPlain(note) ?? [])]
}

/**
 * Keeps the compiled program for the next start, which is quicker by it.
 *
 * It lies where no turn can write: who writes there decides what the next daemon runs. Node's own choice, a folder of
 * everybody's temporary files, is within their reach.
 */
export const keepCompiled = (env: NodeJS.ProcessEnv): void => {
  const folder = stateFolder(env)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    enableCompileCache(join(folder, 'compiled'))
  } catch {
    // A folder that cannot be made costs a slower start and nothing else.
  }
}

/** Ten versions of the program: what earlier ones left is not read again. */
const MOST_COMPILED = 4000

/** Removes the compiled program once it is more than 4,000 files, about 50 MB; the next start compiles it again. */
export const boundCompiled = async (env: NodeJS.ProcessEnv): Promise<void> => {
  const folder = join(stateFolder(env), 'compiled')
  try {
    const versions = await readdir(folder)
    const files = await Promise.all(versions.map(version => readdir(join(folder, version))))
    if (files.flat().length > MOST_COMPILED) await rm(folder, { recursive: true, force: true })
  } catch {
    // As for what cannot be kept: the next start tries again.
  }
}
