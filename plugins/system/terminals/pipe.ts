import { constants, open } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import { needProgram, ownEnv, run } from '../../../sdk/node/programs/run.js'
import { ignored } from '../../../sdk/index.js'

/** Quotes a word of a shell command. */
export const inShell = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** Receives the bytes of a named pipe until it has no writer. */
export interface PipeReader {
  data(bytes: Buffer): void
  ended(): void
}

/** A named pipe that only this user can open: its data is never on a disk. */
export class OutputPipe {
  /** The shell command that writes its input into the pipe; it ends with the reader. */
  readonly command: string
  readonly #path: string
  readonly #socket: Socket

  private constructor(path: string, command: string, socket: Socket) {
    this.#path = path
    this.command = command
    this.#socket = socket
  }

  /**
   * @param path In a folder that only this user can open; replaces what is there.
   */
  static async open(path: string, reader: PipeReader): Promise<OutputPipe> {
    await rm(path, { force: true })
    const { code, stderr } = await run(await needProgram('mkfifo'), ['-m', '600', path], {
      cwd: '/',
      env: await ownEnv(),
    })
    if (code !== 0) throw new Error(`making a named pipe failed: ${stderr}`)
    const socket = new Socket({
      fd: await promisify(open)(path, constants.O_RDONLY | constants.O_NONBLOCK),
      readable: true,
      writable: false,
    })
    socket
      .on('data', bytes => reader.data(bytes))
      .on('error', ignored('its close follows'))
      .once('close', () => reader.ended())
    const name = inShell(path)
    // Opening for reading and writing (fd 3) does not block without a reader; fd 3 is closed again before cat runs.
    return new OutputPipe(
      path,
      `exec 3<>${name}; exec 1>${name} 3>&-; exec ${inShell(await needProgram('cat'))}`,
      socket,
    )
  }

  /** Reads until there is no writer, at most for the given milliseconds. */
  async close(patience: number): Promise<void> {
    if (!this.#socket.destroyed) {
      const late = setTimeout(() => this.#socket.destroy(), patience)
      await new Promise<void>(resolve => this.#socket.once('close', () => resolve()))
      clearTimeout(late)
    }
    await rm(this.#path, { force: true })
  }
}
