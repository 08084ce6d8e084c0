import { open, readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ignored, refuse } from '../../../sdk/index.js'

/** The sockets of a `tor` process, in its folder. */
export const CONTROL = 'control.sock'
export const SOCKS = 'socks.sock'
const COOKIE = 'control_auth_cookie'
const ANSWER_MS = 10_000
const MOST_LINES = 100_000

/** Connects to a socket in a folder, whose path may be longer than a socket's may. */
export const connectIn = async (folder: string, name: string): Promise<Socket> => {
  const handle = await open(folder)
  try {
    const socket = connect({ path: `/proc/self/fd/${handle.fd}/${name}`, allowHalfOpen: true })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return socket.on('error', ignored('its close follows'))
  } finally {
    await handle.close()
  }
}

/** A relay of the consensus. */
export interface ConsensusRelay {
  readonly fingerprint: string
  readonly ip: string
  readonly isExit: boolean
  readonly bandwidth: number
}
/** A circuit, with its last relay. */
export interface Circuit {
  readonly id: string
  readonly state: string
  readonly last: string
  /** Traffic may leave through it. */
  readonly leaves: boolean
}

/** The relays through which traffic may leave: those named, else those of a country, else all. */
export interface ChosenExits {
  readonly country?: string | undefined
  readonly relays?: readonly string[]
}

/** The relays in an answer to `GETINFO ns/all`. */
export const consensusRelays = (lines: readonly string[]): ConsensusRelay[] => {
  const relays: ConsensusRelay[] = []
  for (const line of lines) {
    const [kind = '', ...words] = line.split(' ')
    const last = relays.at(-1)
    if (kind === 'r')
      relays.push({
        fingerprint: Buffer.from(words[1] ?? '', 'base64')
          .toString('hex')
          .toUpperCase(),
        ...{ ip: words[5] ?? '', isExit: false, bandwidth: 0 },
      })
    else if (kind === 's' && last)
      relays.splice(-1, 1, { ...last, isExit: words.includes('Exit') && !words.includes('BadExit') })
    else if (kind === 'w' && last)
      relays.splice(-1, 1, { ...last, bandwidth: Number(/^Bandwidth=(\d+)$/.exec(words[0] ?? '')?.[1] ?? 0) })
  }
  return relays
}

/** The circuits in an answer to `GETINFO circuit-status`. */
export const circuitsIn = (lines: readonly string[]): Circuit[] =>
  lines.flatMap(line => {
    const [id = '', state = '', path = ''] = line.split(' ')
    if (!/^\d+$/.test(id)) return []
    const last = /\$?([0-9A-F]{40})(?:[~=]\w+)?$/.exec(path.startsWith('$') ? path : '')?.[1] ?? ''
    return [{ id, state, last, leaves: !/ONEHOP_TUNNEL|IS_INTERNAL/.test(line) }]
  })

interface Waiting {
  readonly lines: string[]
  readonly resolve: (lines: string[]) => void
  readonly reject: (error: Error) => void
}

/** A connection to the control socket of a `tor` process. */
export class TorControl {
  readonly #socket: Socket
  readonly #waiting: Waiting[] = []
  #inData = false

  private constructor(socket: Socket, notice: (text: string) => void) {
    this.#socket = socket
    socket.setTimeout(ANSWER_MS, () => this.#waiting.length > 0 && socket.destroy())
    socket.once('close', () => this.#waiting.splice(0).forEach(({ reject }) => reject(new Error('tor ended'))))
    createInterface({ input: socket })
      .on('line', line => this.#take(line, notice))
      .on('error', ignored('its close follows'))
  }

  /** Connects and signs in; `notice` gets what it logs. */
  static async connect(folder: string, notice: (text: string) => void = () => {}): Promise<TorControl> {
    const cookie = await readFile(join(folder, COOKIE))
    const control = new TorControl(await connectIn(folder, CONTROL), notice)
    try {
      await control.send(`AUTHENTICATE ${cookie.toString('hex')}`)
      return control
    } catch (error) {
      control.end()
      throw error
    }
  }

  /** Runs something with a connection. */
  static async with<T>(folder: string, work: (control: TorControl) => Promise<T>): Promise<T> {
    const control = await TorControl.connect(folder)
    try {
      return await work(control)
    } finally {
      control.end()
    }
  }

  #take(line: string, notice: (text: string) => void): void {
    const event = /^650[ +-](?:NOTICE|WARN|ERR) (.*)$/.exec(line)?.[1]
    if (event !== undefined && !this.#inData) return notice(event)
    const waiting = this.#waiting[0]
    if (!waiting) return
    if (this.#inData) {
      if (line === '.') this.#inData = false
      else if (waiting.lines.length < MOST_LINES) waiting.lines.push(line.replace(/^\.\./, '.'))
      return
    }
    const [, code = '', sign = '', rest = ''] = /^(\d{3})([ +-])(.*)$/.exec(line) ?? []
    if (sign === '+') this.#inData = true
    else if (sign === '-') waiting.lines.push(rest)
    else if (sign === ' ') {
      this.#waiting.shift()
      if (code === '250') waiting.resolve(waiting.lines)
      else waiting.reject(new Error(`tor refused: ${rest.slice(0, 200)}`))
    }
  }

  /** Sends one command, and answers the lines of its answer. */
  async send(command: string): Promise<string[]> {
    if (/[\r\n]/.test(command)) throw new Error('a command of tor is one line')
    if (this.#socket.destroyed) throw new Error('tor ended')
    const answered = new Promise<string[]>((resolve, reject) => this.#waiting.push({ lines: [], resolve, reject }))
    this.#socket.write(`${command}\r\n`)
    return answered
  }

  /** How far it is, in percent. */
  async progress(): Promise<number> {
    const [line = ''] = await this.send('GETINFO status/bootstrap-phase')
    return Number(/PROGRESS=(\d+)/.exec(line)?.[1] ?? 0)
  }

  async relays(): Promise<ConsensusRelay[]> {
    return consensusRelays(await this.send('GETINFO ns/all'))
  }

  async circuits(): Promise<Circuit[]> {
    return circuitsIn(await this.send('GETINFO circuit-status'))
  }

  /**
   * Sets the relays through which traffic leaves, and closes every circuit from before, which `NEWNYM` alone would let
   * go on.
   */
  async leaveThrough(exits: ChosenExits, without: readonly string[] = []): Promise<void> {
    await this.#choose(exits, without)
    await this.#close(({ leaves }) => leaves)
    await this.send('SIGNAL NEWNYM')
  }

  /** From here on traffic leaves through one relay alone, so that every host sees the same address. */
  async pin(fingerprint: string): Promise<void> {
    await this.#choose({ relays: [fingerprint] }, [])
    await this.#close(({ leaves, last }) => leaves && last !== fingerprint)
  }

  async #choose({ country, relays = [] }: ChosenExits, without: readonly string[]): Promise<void> {
    const listed = (some: readonly string[]) => some.map(each => `$${each}`).join(',')
    const chosen = relays.length > 0 ? listed(relays) : country === undefined ? '' : `{${country.toLowerCase()}}`
    const exits = chosen === '' ? 'ExitNodes' : `ExitNodes=${chosen}`
    const excluded = without.length === 0 ? 'ExcludeExitNodes' : `ExcludeExitNodes=${listed(without)}`
    await this.send(`SETCONF ${exits} ${excluded} StrictNodes=1`)
  }

  async #close(chosen: (circuit: Circuit) => boolean): Promise<void> {
    for (const circuit of await this.circuits())
      // It may have closed meanwhile.
      if (chosen(circuit))
        await this.send(`CLOSECIRCUIT ${circuit.id}`).catch(ignored('a circuit that is gone is closed'))
  }

  end(): void {
    this.#socket.destroy()
  }
}

/** Asks for the process of a `tor`, which proves that it is the one of this folder. */
export const torProcess = async (folder: string): Promise<number> => {
  const [line = ''] = await TorControl.with(folder, control => control.send('GETINFO process/pid'))
  return Number(/^process\/pid=(\d+)$/.exec(line)?.[1] ?? refuse('dependency', 'tor does not say its process'))
}
