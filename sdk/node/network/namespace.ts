import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { NEAR_NETWORKS } from './addresses.js'
import type { ListeningSocket, Loopback } from './socket-table.js'
import { SocketTables } from './listening-sockets.js'
import { programFile } from '../programs/package.js'
import { lowerPriority } from '../programs/priority.js'
import { needProgram, ownEnv, run } from '../programs/run.js'
import { ignored } from '../../ignored.js'

/** What the helper inside is asked: to listen on a port of loopback, or to connect to one. */
export type AskedInside =
  | { readonly id: number; readonly listen: number; readonly host: string }
  | { readonly id: number; readonly dial: number; readonly host?: Loopback }

/** What it answers: that it is there, and the socket or the system's code of a failure. */
export type ToldInside = { readonly ready: true } | { readonly id: number; readonly failed?: string }

/** The program of the helper. */
const INSIDE = programFile('sdk/node/network/inside-child.js')

const STARTS_MS = 20_000
/** A socket that does not arrive, as when this process may open no more files, gives no event. */
const ANSWERS_MS = 10_000
/** The helper goes when nobody asked it for this long. */
const RESTS_MS = 15_000

/** Brings loopback up; what is near the machine is refused at once, whatever ways out there will be. */
const SETUP = 'printf "%s\\n" "$2" | "$1" -batch - && shift 2 && exec "$@"'
const prohibited = (networks: readonly string[]): string =>
  networks.map(network => `route replace prohibit ${network}`).join('\n')

interface Waiting {
  readonly done: (handle: Server | Socket) => void
  readonly failed: (error: Error) => void
}

/** One start of the helper. */
class Helper {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  readonly ready: Promise<void>
  readonly gone: Promise<void>
  #next = 0
  #timer: NodeJS.Timeout | undefined

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.#child = spawn(program, args, { env, cwd: '/', stdio: ['ignore', 'ignore', 'pipe', 'ipc'], detached: true })
    if (this.#child.pid !== undefined) lowerPriority(this.#child.pid)
    const ready = Promise.withResolvers<void>()
    const gone = Promise.withResolvers<void>()
    this.ready = ready.promise
    this.gone = gone.promise
    this.ready.catch(ignored('the caller that awaits it gets the failure'))
    let errors = ''
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-500)))
    const late = setTimeout(() => this.#child.kill('SIGKILL'), STARTS_MS).unref()
    const over = (why: string) => {
      clearTimeout(late)
      clearTimeout(this.#timer)
      const error = new Error(`the helper of the network ${why}${errors.trim() ? `: ${errors.trim()}` : ''}`)
      ready.reject(error)
      for (const { failed } of this.#waiting.values()) failed(error)
      this.#waiting.clear()
      gone.resolve()
    }
    this.#child.once('error', error => over(`could not be started (${error.message})`))
    this.#child.once('exit', (code, signal) => over(`ended with ${signal ?? code}`))
    this.#child.on('message', (told: ToldInside, handle: unknown) => {
      if ('ready' in told) {
        clearTimeout(late)
        this.#rest()
        return ready.resolve()
      }
      const waiting = this.#waiting.get(told.id)
      this.#waiting.delete(told.id)
      if (!this.#waiting.size) this.#rest()
      if (told.failed !== undefined) waiting?.failed(Object.assign(new Error(told.failed), { code: told.failed }))
      else waiting?.done(handle as Server | Socket)
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async ask(
    asked: { readonly listen: number; readonly host: string } | { readonly dial: number; readonly host?: Loopback },
  ): Promise<Server | Socket> {
    clearTimeout(this.#timer)
    const id = ++this.#next
    const late = setTimeout(() => this.#child.kill('SIGKILL'), ANSWERS_MS)
    return new Promise<Server | Socket>((done, failed) => {
      this.#waiting.set(id, { done, failed })
      this.#child.ref()
      this.#child.channel?.ref()
      this.#child.send(
        { id, ...asked } satisfies AskedInside,
        error => void (error && this.#waiting.delete(id) && failed(error)),
      )
    }).finally(() => clearTimeout(late))
  }

  end(): void {
    if (this.#child.connected) this.#child.disconnect()
    else this.#child.kill('SIGKILL')
  }

  /** Nobody waits for it: it keeps no process alive, and goes after a while. */
  #rest(): void {
    this.#child.unref()
    this.#child.channel?.unref()
    ;(this.#child.stderr as { unref?: () => void } | null)?.unref?.()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.end(), RESTS_MS).unref()
  }
}

/**
 * A network of its own with nothing but loopback.
 *
 * It lives as long as this process holds it open or a process is in it: nothing stays of it when the daemon is killed.
 */
export class NetworkNamespace {
  readonly #net: number
  readonly #user: number | undefined
  readonly #tables: SocketTables
  readonly #nsenter: string
  readonly #env: NodeJS.ProcessEnv
  #helper: Helper | undefined
  #starting: Promise<Helper> | undefined
  #closed = false

  private constructor(helper: Helper, nsenter: string, env: NodeJS.ProcessEnv) {
    this.#nsenter = nsenter
    this.#env = env
    const opened: number[] = []
    const open = (path: string): number => {
      const fd = openSync(`/proc/${helper.pid}/${path}`, 'r')
      opened.push(fd)
      return fd
    }
    try {
      this.#net = open('ns/net')
      this.#user = process.getuid?.() === 0 ? undefined : open('ns/user')
      this.#tables = new SocketTables(`/proc/${helper.pid}/net`)
    } catch (error) {
      for (const fd of opened) closeSync(fd)
      throw error
    }
    this.#keep(helper)
  }

  /**
   * Makes one.
   *
   * @throws Where the system does not let it, or a program is missing.
   */
  static async make(): Promise<NetworkNamespace> {
    const [unshare, nsenter, ip, sh] = await Promise.all(['unshare', 'nsenter', 'ip', 'sh'].map(needProgram))
    const { PATH = '' } = await ownEnv()
    const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
    const batch = `link set lo up\n${prohibited(NEAR_NETWORKS)}`
    const helper = new Helper(
      unshare!,
      [...user, '--net', '--', sh!, '-c', SETUP, 'network', ip!, batch, ...helperCommand()],
      { PATH },
    )
    await helper.ready
    try {
      return new NetworkNamespace(helper, nsenter!, { PATH })
    } catch (error) {
      helper.end()
      throw error
    }
  }

  /** Whether it belongs to a user namespace: a program that enters that is the superuser in it. */
  get inUserNamespace(): boolean {
    return this.#user !== undefined
  }

  /** Its places, for programs that enter it themselves. */
  get paths(): { readonly net: string; readonly user?: string } {
    if (this.#closed) throw new Error('the network is gone')
    const at = (fd: number) => `/proc/${process.pid}/fd/${fd}`
    return { net: at(this.#net), ...(this.#user !== undefined && { user: at(this.#user) }) }
  }

  /** The command that starts another one in it, which follows. */
  get entering(): [program: string, ...args: string[]] {
    const { net, user } = this.paths
    return [
      this.#nsenter,
      ...(user === undefined ? [] : ['--preserve-credentials', `--user=${user}`]),
      `--net=${net}`,
      '--',
    ]
  }

  /** A server on a port of its loopback whose connections come to this process. */
  async listen(port: number, host = '127.0.0.1'): Promise<Server> {
    const server = (await (await this.#help()).ask({ listen: port, host })) as Server
    // It was made elsewhere: this is not told with it.
    Object.assign(server, { allowHalfOpen: true })
    server.on('error', ignored('its exit follows'))
    return server.unref()
  }

  /** The sockets in it on which something listens. */
  listening(): ListeningSocket[] {
    return this.#tables.listening()
  }

  /** A connection to a port of its loopback, paused. */
  async dial(port: number, host?: Loopback): Promise<Socket> {
    const socket = (await (await this.#help()).ask({ dial: port, ...(host && { host }) })) as Socket
    socket.allowHalfOpen = true
    return socket.on('error', ignored('its close follows')).pause()
  }

  /** Refuses these networks too. */
  async prohibit(networks: readonly string[]): Promise<void> {
    const [program, ...args] = this.entering
    const { code, stderr } = await run(program, [...args, await needProgram('ip'), '-batch', '-'], {
      cwd: '/',
      env: await ownEnv(),
      input: `${prohibited(networks)}\n`,
      timeoutMs: 10_000,
    })
    if (code !== 0) throw new Error(`the network could not be closed to ${networks.join(', ')}: ${stderr.trim()}`)
  }

  /** Lets go of it: it is gone when the last process in it is. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#helper?.end()
    for (const fd of [this.#net, this.#user]) if (fd !== undefined) closeSync(fd)
    this.#tables.close()
  }

  #help(): Promise<Helper> {
    if (this.#helper) return Promise.resolve(this.#helper)
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined))
    return this.#starting
  }

  async #start(): Promise<Helper> {
    const [program, ...args] = this.entering
    const helper = new Helper(program, [...args, ...helperCommand()], this.#env)
    await helper.ready
    this.#keep(helper)
    if (this.#closed) helper.end()
    return helper
  }

  #keep(helper: Helper): void {
    this.#helper = helper
    void helper.gone.then(() => void (this.#helper === helper && (this.#helper = undefined)))
  }
}

const helperCommand = (): string[] => [process.execPath, INSIDE]
