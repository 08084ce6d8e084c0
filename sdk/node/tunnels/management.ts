import { open } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { ignored } from '../../index.js'

/** The management socket of an `openvpn` process. */
export const MANAGEMENT = 'management.sock'

/** A connection to an `openvpn` process, which has one at a time. */
export class Management {
  readonly #socket: Socket
  readonly #waiting: { resolve: (answer: string) => void; reject: (error: Error) => void }[] = []
  /** Its process ended, or the connection did. */
  readonly closed: Promise<void>

  private constructor(socket: Socket, said: (line: string, to: Management) => void) {
    this.#socket = socket
    socket.on('error', ignored('its close follows'))
    this.closed = new Promise(resolve => socket.once('close', () => resolve()))
    void this.closed.then(() => this.#waiting.splice(0).forEach(({ reject }) => reject(new Error('openvpn ended'))))
    createInterface({ input: socket })
      .on('line', line => {
        if (/^(SUCCESS|ERROR):/.test(line)) this.#waiting.shift()?.resolve(line)
        else if (line.startsWith('>')) said(line.slice(1), this)
      })
      .on('error', ignored('its close follows'))
  }

  /** Connects to the socket in a folder, whose path may be longer than a socket's may. */
  static async connect(folder: string, said: (line: string, to: Management) => void): Promise<Management> {
    const handle = await open(folder)
    try {
      const socket = connect(`/proc/self/fd/${handle.fd}/${MANAGEMENT}`)
      await new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve)
        socket.once('error', reject)
      })
      return new Management(socket, said)
    } finally {
      await handle.close()
    }
  }

  /** Sends one command and answers the line that says how it went. */
  async send(command: string): Promise<string> {
    const answered = new Promise<string>((resolve, reject) => this.#waiting.push({ resolve, reject }))
    this.#socket.write(`${command}\n`)
    return answered
  }

  end(): void {
    this.#socket.destroy()
  }
}

/** A text as an argument of a command. */
export const quotedArgument = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
