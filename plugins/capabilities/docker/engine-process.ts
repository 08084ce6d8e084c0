import { hash } from 'node:crypto'
import { constants } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { basename, isAbsolute } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { linesWithin, PipedProcess } from '../../../sdk/node/programs/piped-process.js'
import { programFile } from '../../../sdk/node/programs/package.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'

/** The program that starts an engine behind the wall. */
export const ENGINE_CHILD = programFile('plugins/capabilities/docker/engine-child.js')

const START_MS = 30_000
const MOST_LINE = 10_000

/** The engine of one conversation, as its turns see it now. */
export class EngineProcess {
  /** Stands for all that the engine sees: another view needs another engine. */
  readonly view: string
  /** Whose work it serves: the folder that it keeps images in is named so. */
  readonly trust: string
  readonly #process: PipedProcess

  private constructor(process: PipedProcess, view: string, trust: string) {
    this.#process = process
    this.view = view
    this.trust = trust
  }

  /**
   * Starts an engine; resolves when it answers.
   *
   * @throws A refusal `dependency` with what it said.
   */
  static async start(command: Walled, view: string): Promise<EngineProcess> {
    const process = new PipedProcess(command, undefined, undefined, 'sockets')
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>(resolve => (timer = setTimeout(resolve, START_MS, 'late')))
    try {
      const lines = linesWithin(process.output as AsyncIterable<Buffer>, MOST_LINE)
      const first = await Promise.race([lines.next(), late])
      if (first !== 'late' && !first.done) return new EngineProcess(process, view, basename(command.args.at(-1) ?? ''))
      const how = first === 'late' ? `did not answer within ${START_MS / 1000} s` : await process.ended
      await process.end('at once')
      return refuse('dependency', `the container engine ${how}: ${process.errors.slice(-400) || 'it said nothing'}`)
    } catch (error) {
      await process.end('at once')
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  get over(): boolean {
    return this.#process.over
  }

  /** Hands a connection of a turn's program over to it; resolves when it is sent. */
  hand(client: Socket): Promise<void> {
    return this.#process.hand(client)
  }

  end(): Promise<void> {
    return this.#process.end('at once')
  }
}

/** Stands for everything that a command behind the wall sees: the folders themselves, not only their paths. */
export const viewOf = async ({ program, args, env, cwd }: Omit<Walled, 'enforced'>): Promise<string> => {
  const places = await Promise.all(
    args.filter(isAbsolute).map(path =>
      stat(path).then(
        ({ dev, ino, mode }) => [dev, ino, mode & constants.S_IFMT],
        () => [],
      ),
    ),
  )
  return hash('sha256', JSON.stringify([program, args, env, cwd, places]))
}
