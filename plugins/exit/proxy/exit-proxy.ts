import { mkdir, open, rm, type FileHandle } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { ignored, refuse } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { Dial } from '../../../sdk/node/network/policy.js'
import { ownerOfPort, showsConnections } from '../../../sdk/node/network/local/port-owner.js'
import { EgressProxy } from '../../../sdk/node/network/proxy.js'
import { noTunnel } from './targets.js'

const MOST_CONNECTIONS = 512
const CHECKS = 'checks.sock'
const WHAT = 'this is the proxy of an exit'

/** Where checks of an exit connect, until it is closed. */
export interface CheckDoor {
  readonly path: string
  close(): Promise<void>
}

/**
 * The proxy of one exit, on a port of loopback. As long as it is not proven where the exit comes out, nothing but its
 * own checks goes through it; without a tunnel everything is refused.
 */
export class ExitProxy {
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #dial: Dial | undefined
  #isProven = false
  readonly #open: EgressProxy
  readonly #checks: EgressProxy

  private constructor(port: number) {
    this.port = port
    const dial: Dial = async (target, how) => {
      if (!this.#dial) throw noTunnel()
      return this.#dial(target, how)
    }
    this.#checks = new EgressProxy(dial, undefined, WHAT)
    this.#open = new EgressProxy(
      async (target, how) => {
        if (!this.#isProven) throw noTunnel()
        return dial(target, how)
      },
      undefined,
      WHAT,
    )
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, socket => void this.#admit(socket))
  }

  /** Listens on a port of loopback. 409: something else has it. */
  static async listen(port: number): Promise<ExitProxy> {
    const proxy = new ExitProxy(port)
    try {
      await new Promise<void>((listening, failed) => {
        proxy.#server.once('error', failed).listen({ port, host: '127.0.0.1', exclusive: true }, listening)
      })
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw error
      refuse('conflict', `port ${port} of this machine, on which its proxy is, is taken by another program`)
    }
    proxy.#server.on('error', ignored('the clients of the proxy get the failure')).unref()
    return proxy
  }

  /** From here on traffic goes through this, for checks alone; connections from before are closed. */
  through(dial: Dial | undefined): void {
    this.#isProven = false
    this.#dial = dial
    this.closeAll()
  }

  /** It is known where traffic comes out. */
  proven(): void {
    this.#isProven = true
  }

  /** Whether it is known where traffic comes out. */
  get isProven(): boolean {
    return this.#isProven
  }

  /** Takes a connection of a conversation's program. */
  take(socket: Socket): void {
    if (!this.#track(socket)) return
    this.#open.serve(socket)
  }

  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Listens no longer; what was open closes. */
  close(): void {
    this.#server.close()
    this.through(undefined)
  }

  /** Opens the way for checks, in the private folder of the exit. */
  async door(folder: string): Promise<CheckDoor> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const handle: FileHandle = await open(folder)
    const path = `/proc/self/fd/${handle.fd}/${CHECKS}`
    await rm(path, { force: true })
    const sockets = new Set<Socket>()
    const server = createServer({ allowHalfOpen: true }, socket => {
      if (!this.#track(socket)) return
      sockets.add(socket)
      this.#checks.serve(socket)
    })
    const close = async (): Promise<void> => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await rm(path, { force: true })
      await handle.close()
    }
    try {
      await new Promise<void>((listening, failed) => server.once('error', failed).listen(path, listening))
    } catch (error) {
      await handle.close()
      throw error
    }
    return { path, close }
  }

  /** Only programs of the daemon's own user may use it. */
  async #admit(socket: Socket): Promise<void> {
    if (!this.#track(socket)) return
    const isOurs = async () =>
      !showsConnections || (await ownerOfPort(socket.remotePort ?? 0, [this.port])) === process.getuid?.()
    if (!(await isOurs().catch(() => false))) return void socket.destroy()
    this.#open.serve(socket)
  }

  #track(socket: Socket): boolean {
    socket.on('error', ignored('its close follows'))
    if (this.#sockets.size >= MOST_CONNECTIONS) {
      socket.destroy()
      return false
    }
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return true
  }
}
