import { hash } from 'node:crypto'
import type { Socket } from 'node:net'
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
  readonly key: string
  readonly #process: PipedProcess

  private constructor(process: PipedProcess, key: string) {
    this.#process = process
    this.key = key
  }

  /**
   * Starts an engine; resolves when it answers.
   *
   * @throws A refusal `dependency` with what it said.
   */
  static async start(command: Walled): Promise<EngineProcess> {
    const process = new PipedProcess(command, undefined, undefined, 'sockets')
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>(resolve => (timer = setTimeout(resolve, START_MS, 'late')))
    try {
      const lines = linesWithin(process.output as AsyncIterable<Buffer>, MOST_LINE)
      const first = await Promise.race([lines.next(), late])
      if (first !== 'late' && !first.done) return new EngineProcess(process, viewOf(command))
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

  /** Hands a connection of a turn's program over to it. */
  hand(client: Socket): void {
    this.#process.hand(client)
  }

  end(): Promise<void> {
    return this.#process.end('at once')
  }
}

/** Stands for everything that a command behind the wall sees. */
export const viewOf = ({ program, args, env, cwd }: Omit<Walled, 'enforced'>): string =>
  hash('sha256', JSON.stringify([program, args, env, cwd]))
