import { realpath } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import type { Client } from '../../../client.js'
import { ignored } from '../../../ignored.js'
import { foldersWithGit } from '../../../node/repositories/folders-with-git.js'
import { Refusal } from '../../../refusal.js'
import { type Connection, connected, whichDaemon } from '../../daemon/connection.js'
import { oneLine } from '../../terminal/text.js'
import type { GivenArguments, Terminal } from '../../verb.js'

/** The daemon that serves a folder of the editor's machine. */
export interface ServedFolder {
  readonly client: Client
  /** The workspace's folder on the editor's machine. */
  readonly root: string
  /** Where turns start, from the root; empty: at the root. */
  readonly startIn: string
  /** Whether the workspace holds a repository, so that turns can work in private copies. */
  readonly copies: boolean
}

/** The daemons that the sessions of an editor talk to; each connection is made once, when it is needed. */
export class Daemons {
  readonly #terminal: Terminal
  readonly #given: GivenArguments
  readonly #open = new Map<string, Promise<Connection>>()
  readonly #ends: Promise<unknown>[] = []
  readonly #over = Promise.withResolvers<void>()

  constructor(terminal: Terminal, given: GivenArguments) {
    const { sign: _drawnOnOutput, ...silent } = terminal
    this.#terminal = silent
    this.#given = given
  }

  /** The daemon of a folder; refuses a folder outside its workspace. */
  async at(folder: string): Promise<ServedFolder> {
    if (!isAbsolute(folder))
      throw new Refusal('invalid', `cwd: expected an absolute path, found ${oneLine(folder.slice(0, 200))}`)
    const real = await realpath(folder).catch((error: NodeJS.ErrnoException) => {
      throw new Refusal('invalid', `cwd: ${oneLine(folder)} cannot be opened (${error.code})`)
    })
    const connection = await this.#connection(real)
    const { daemon } = connection
    if (!daemon) return servedBy(connection, real)
    const startIn = relative(daemon.workspace, real)
    if (startIn === '..' || startIn.startsWith(`..${sep}`) || isAbsolute(startIn)) {
      throw new Refusal(
        'invalid',
        `cwd: expected a folder of the workspace ${oneLine(daemon.workspace)}, found ${oneLine(real)}; start a daemon `
          + 'there with "sandbox serve"',
      )
    }
    return { ...(await servedBy(connection, real)), startIn: startIn.split(sep).join('/') }
  }

  /** The daemon that the command line selects, for what concerns no folder. */
  async anywhere(): Promise<ServedFolder> {
    const { cwd } = this.#terminal
    return servedBy(await this.#connection(cwd), cwd)
  }

  /** Connects anew when it is asked next: a daemon that was started again may have another address. */
  forget(client: Client): void {
    for (const [url, opened] of this.#open)
      opened.then(one => one.client === client && this.#open.delete(url), ignored('whoever waits for it is told'))
  }

  /** Ends the connections; turns go on. */
  async close(): Promise<void> {
    this.#over.resolve()
    await Promise.allSettled(this.#ends)
  }

  async #connection(cwd: string): Promise<Connection> {
    const terminal = { ...this.#terminal, cwd }
    const { url, daemon } = await whichDaemon(terminal, this.#given)
    const known = this.#open.get(url)
    if (known) return known
    const given: GivenArguments = {
      ...this.#given,
      on: flag => this.#given.on(flag),
      all: flag => this.#given.all(flag),
      text: flag => {
        if (flag === 'data') return daemon?.data
        return flag === 'url' ? (daemon ? undefined : url) : this.#given.text(flag)
      },
    }
    const opened = new Promise<Connection>((resolve, reject) => {
      const end = connected(terminal, given, connection => {
        resolve(connection)
        return this.#over.promise
      })
      end.catch(reject)
      this.#ends.push(end)
    })
    this.#open.set(url, opened)
    opened.catch(() => this.#open.delete(url))
    return opened
  }
}

/** Of a daemon elsewhere the editor's folder counts as the workspace. */
const servedBy = async ({ client, daemon }: Connection, folder: string): Promise<ServedFolder> => ({
  client,
  root: daemon?.workspace ?? folder,
  startIn: '',
  copies: !daemon || !(await foldersWithGit(daemon.workspace).next()).done,
})

/** A path of the workspace as a path of the editor's machine. */
export const editorPath = (root: string, path: string): string => (isAbsolute(path) ? path : join(root, path))
