import { constants, open } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import { needProgram, ownEnv, run } from '../../../sdk/node/programs/run.js'

/** A word of a shell's command, whatever stands in it. */
export const inShell = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** What is read of a pipe by name, until nobody writes to it any more. */
export interface PipeReader {
  data(bytes: Buffer): void
  ended(): void
}

/** A pipe by name, of this user alone: what goes through it is never on a disk. */
export class OutputPipe {
  /** The command that writes its input into the pipe, for a shell; it ends with whoever reads. */
  readonly command: string
  readonly #path: string
  readonly #socket: Socket

  private constructor(path: string, command: string, socket: Socket) {
    this.#path = path
    this.command = command
    this.#socket = socket
  }

  /** @param path In a folder of this user alone; what is there goes. */
  static async open(path: string, reader: PipeReader): Promise<OutputPipe> {
    await rm(path, { force: true })
    const { code, stderr } = await run(await needProgram('mkfifo'), ['-m', '600', path], {
      cwd: '/',
      env: await ownEnv(),
    })
    if (code !== 0) throw new Error(`no pipe could be made: ${stderr}`)
    const socket = new Socket({
      fd: await promisify(open)(path, constants.O_RDONLY | constants.O_NONBLOCK),
      readable: true,
      writable: false,
    })
    socket
      .on('data', bytes => reader.data(bytes))
      .on('error', () => {})
      .once('close', () => reader.ended())
    const name = inShell(path)
    // Opened for both first, it neither waits for a reader who has gone meanwhile, nor counts as one itself.
    return new OutputPipe(
      path,
      `exec 3<>${name}; exec 1>${name} 3>&-; exec ${inShell(await needProgram('cat'))}`,
      socket,
    )
  }

  /** Reads what is there until nobody writes any more, or for so many milliseconds. */
  async close(patience: number): Promise<void> {
    if (!this.#socket.destroyed) {
      const late = setTimeout(() => this.#socket.destroy(), patience)
      await new Promise<void>(resolve => this.#socket.once('close', () => resolve()))
      clearTimeout(late)
    }
    await rm(this.#path, { force: true })
  }
}
