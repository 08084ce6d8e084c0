import { access, constants, realpath } from 'node:fs/promises'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { refuse, type Place } from '../../../sdk/index.js'
import { contains, inside } from '../../../sdk/node/files/paths.js'
import { installedAt, programNamed } from '../../../sdk/node/programs/installed-at.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { splitWords } from '../../../sdk/node/programs/split-words.js'
import { walled } from '../../../sdk/node/wall/wall.js'
import type { RunnableExtension } from '../runtime.js'
import type { ExtensionProcess } from '../manifest/manifest.js'
import type { DaemonAccess } from './daemon-access.js'
import type { ProcessCommand } from './supervised-process.js'

/** What the command of a program is made from. */
export interface CommandOrder {
  readonly place: Pick<Place, 'workspace' | 'data' | 'hidden' | 'grants'>
  readonly extension: Pick<RunnableExtension, 'dir' | 'dataDir'>
  readonly declared: ExtensionProcess
  /** Its settings that have the name of a variable. */
  readonly env: { readonly [name: string]: string }
  /** With what it calls the daemon. */
  readonly access: DaemonAccess
  /** The folder with its secrets. */
  readonly secrets?: string
  /** The port of the start before. */
  readonly before: number | undefined
}

/** The command that runs a declared program behind the wall, its code read-only and its data folder writable. */
export const processCommand = async (order: CommandOrder): Promise<ProcessCommand> => {
  const { place, extension, declared, env, access: calls, secrets, before } = order
  const { dir, dataDir } = extension
  const root = await realpath(place.workspace)
  const [word = '', ...args] = splitWords(declared.command) ?? []
  const { cwd: folder = '.' } = declared
  const missing = () => refuse('conflict', `its folder ${folder} is not there`)
  const cwd = folder === '.' ? dir : await inside(dir, folder).catch(missing)
  const program = word.includes('/') ? await ownFile(dir, cwd, word) : await installed(word)
  const port = declared.port === 'auto' ? await freePort(before) : undefined
  const around = [dir, ...(contains(dir, program) ? [] : await installedAt(program))]
  const command = await walled(
    {
      workspace: root,
      data: place.data,
      cwd,
      terminal: true,
      hide: place.hidden,
      grants: place.grants,
      exposed: [dataDir, ...(secrets === undefined ? [] : [secrets])],
      readOnly: around.filter(each => !contains(root, each) || each === dir),
      env: listEnv({
        ...env,
        ...{ TERM: 'xterm-256color', COLORTERM: 'truecolor' },
        ...{ PWD: cwd, HOME: dataDir, SANDBOX_WORKSPACE: root, SANDBOX_EXTENSION_DATA: dataDir },
        ...calls.env,
        ...(port !== undefined && { PORT: String(port) }),
        ...(secrets !== undefined && { SANDBOX_SECRETS_DIR: secrets }),
      }),
    },
    program,
    args,
  )
  if (!command.enforced)
    refuse('missing-program', 'its programs cannot be contained on this machine: install bubblewrap')
  const { end: ended } = calls
  return { program: command.program, args: command.args, env: command.env, ended, ...(port !== undefined && { port }) }
}

/** A program of the extension's own, from the folder that it starts in. */
const ownFile = async (dir: string, cwd: string, word: string): Promise<string> => {
  const path = await realpath(join(cwd, word)).catch(() => undefined)
  const fits =
    path !== undefined
    && contains(dir, path)
    && (await access(path, constants.X_OK).then(
      () => true,
      () => false,
    ))
  return fits ? path! : refuse('conflict', `its program ${word} is not there, or is not executable`)
}

const installed = async (word: string): Promise<string> =>
  (await programNamed(word)) ?? refuse('missing-program', `there is no program ${word || 'in its command'}: install it`)

/** A port of this machine that nobody listens on, that of before where it is free. */
const freePort = async (before: number | undefined): Promise<number> => {
  for (const wanted of before === undefined ? [0] : [before, 0]) {
    const server = createServer()
    try {
      server.listen(wanted, '127.0.0.1')
      await once(server, 'listening')
      return (server.address() as { port: number }).port
    } catch {
      // Somebody listens there: another one is taken.
    } finally {
      server.close()
    }
  }
  return refuse('unavailable', 'no port of this machine is free', { retryAfter: 5 })
}
