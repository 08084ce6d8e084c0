import { once } from 'node:events'
import { mkdir, open, readdir, realpath, rm, stat, type FileHandle } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { ignored, Refusal, refuse, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { countedFor } from '../../../sdk/node/limits/counted.js'
import { needProgram, ownEnv, run } from '../../../sdk/node/programs/run.js'
import { conversationHome } from '../../../sdk/node/wall/home.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { ENGINE_CHILD, EngineProcess, viewOf } from './engine-process.js'
import { engineFiles, type EngineSettings } from './engine-settings.js'

/** How long an engine stays when no turn of its conversation runs. */
const IDLE_MS = 600_000
const MOST_WAITING = 64
const DOOR = 'engine.sock'
const DOORS = 'engine-doors'
const STORES = 'engine-stores'

interface Door {
  readonly server: Server
  /** The folder; its path can be longer than the path of a socket may be. */
  readonly folder: FileHandle
  readonly waiting: Set<Socket>
}

type EnginesHost = Pick<Host, 'call' | 'serves' | 'place' | 'signal' | 'log'>

interface EnginesDeps {
  readonly host: EnginesHost
  /** The settings of the connected engine, or why there is none. */
  readonly settings: () => Promise<EngineSettings | string>
  readonly idleMs?: number
}

/**
 * The container engines of conversations, each behind the wall of its conversation: started by the first program that
 * connects, ended some minutes after the last turn. The daemon takes the connections of programs and hands them over
 * unread; it opens none to an engine, which could lead it elsewhere.
 */
export class ContainerEngines {
  readonly #deps: EnginesDeps
  readonly #doors = new Map<string, Promise<Door>>()
  readonly #engines = new Map<string, EngineProcess>()
  readonly #mutex = new KeyedMutex()
  readonly #idle = new Map<string, NodeJS.Timeout>()

  constructor(deps: EnginesDeps) {
    this.#deps = deps
    deps.host.signal.addEventListener('abort', () => void this.endAll(), { once: true })
  }

  /** Opens the socket of a conversation's engine; returns the real path of its folder. */
  async open(conversationId: string): Promise<string> {
    clearTimeout(this.#idle.get(conversationId))
    this.#idle.delete(conversationId)
    let door = this.#doors.get(conversationId)
    if (!door) {
      door = this.#open(conversationId)
      this.#doors.set(conversationId, door)
      door.catch(() => this.#doors.delete(conversationId))
    }
    await door
    return realpath(this.#doorOf(conversationId))
  }

  /** A turn ended: without another one the engine ends after a while. */
  ended(conversationId: string): void {
    if (!this.#doors.has(conversationId)) return
    clearTimeout(this.#idle.get(conversationId))
    const release = () => void this.release(conversationId).catch(ignored('it may have ended already'))
    this.#idle.set(conversationId, setTimeout(release, this.#deps.idleMs ?? IDLE_MS).unref())
  }

  /** Ends the engine of a conversation with its containers, and closes its socket. */
  async release(conversationId: string): Promise<void> {
    clearTimeout(this.#idle.get(conversationId))
    this.#idle.delete(conversationId)
    const opening = this.#doors.get(conversationId)
    this.#doors.delete(conversationId)
    const door = await opening?.catch(() => undefined)
    if (door) {
      for (const socket of door.waiting) socket.destroy()
      await new Promise(closed => door.server.close(closed))
      await door.folder.close()
    }
    await this.#mutex.with(conversationId, () => this.#end(conversationId))
  }

  /** Ends the engine of a conversation, and removes its images and containers. */
  async forget(conversationId: string): Promise<void> {
    await this.release(conversationId)
    await remove(this.#storeOf(conversationId))
    await remove(this.#doorOf(conversationId))
  }

  /** Ends every engine; its images stay. */
  async endAll(): Promise<void> {
    await Promise.all([...new Set([...this.#doors.keys(), ...this.#engines.keys()])].map(id => this.release(id)))
  }

  /** Ends every engine, and removes all images and containers. */
  async forgetAll(): Promise<void> {
    await this.endAll()
    for (const folder of [DOORS, STORES]) await remove(join(this.#deps.host.place.folder, folder))
  }

  /** Whether a container of any conversation may run. */
  get busy(): boolean {
    return [...this.#engines.values()].some(engine => !engine.over)
  }

  /** Removes what is left of conversations that are gone. */
  async sweep(): Promise<void> {
    const { data, folder } = this.#deps.host.place
    for (const kind of [DOORS, STORES])
      for (const id of await readdir(join(folder, kind)).catch(() => [] as string[]))
        if (!(await stat(conversationHome(data, id)).catch(() => undefined))) await remove(join(folder, kind, id))
  }

  #doorOf(conversationId: string): string {
    return join(this.#deps.host.place.folder, DOORS, conversationId)
  }

  #storeOf(conversationId: string): string {
    return join(this.#deps.host.place.folder, STORES, conversationId)
  }

  async #open(conversationId: string): Promise<Door> {
    const path = this.#doorOf(conversationId)
    await mkdir(path, { recursive: true, mode: 0o700 })
    await rm(join(path, DOOR), { force: true })
    const folder = await open(path, 'r')
    const waiting = new Set<Socket>()
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, socket => {
      if (waiting.size >= MOST_WAITING) return void socket.destroy()
      waiting.add(socket)
      socket.once('close', () => waiting.delete(socket))
      socket.on('error', () => socket.destroy())
      void this.#serve(conversationId, socket).finally(() => waiting.delete(socket))
    })
    server.listen({ path: `/proc/self/fd/${folder.fd}/${DOOR}` }).unref()
    try {
      await once(server, 'listening')
    } catch (error) {
      await folder.close()
      throw error
    }
    return { server, folder, waiting }
  }

  async #serve(conversationId: string, socket: Socket): Promise<void> {
    try {
      const engine = await this.#mutex.with(conversationId, () => this.#engine(conversationId))
      if (!socket.destroyed) engine.hand(socket)
    } catch (error) {
      if (!(error instanceof Refusal))
        this.#deps.host.log.warn('starting a container engine failed', { error: String(error) })
      const message = error instanceof Refusal ? error.message : 'the container engine could not be started'
      const body = JSON.stringify({ message })
      socket.end(
        'HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n'
          + `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
    }
  }

  /** The engine that sees what the programs of the running turn see; another one is ended first. */
  async #engine(conversationId: string): Promise<EngineProcess> {
    if (!this.#doors.has(conversationId)) refuse('unavailable', 'the container engine is not connected any more')
    const settings = await this.#deps.settings()
    if (typeof settings === 'string') refuse('unavailable', settings as string)
    const running = this.#engines.get(conversationId)
    const command = await this.#command(conversationId, settings as EngineSettings).catch((error: unknown) => {
      // What a turn left in the background goes on with the engine that it knows.
      if (running && !running.over && error instanceof Refusal && error.reason === 'conflict') return undefined
      throw error
    })
    if (running && !running.over && (!command || running.key === viewOf(command))) return running
    await this.#end(conversationId)
    const engine = await EngineProcess.start(command!)
    this.#engines.set(conversationId, engine)
    return engine
  }

  async #command(conversationId: string, settings: EngineSettings): Promise<Walled> {
    const { host } = this.#deps
    if (!(await host.serves('agent.walled'))) refuse('unavailable', 'no group runs turns here')
    const command = await host.call('agent.walled', {
      conversationId,
      program: process.execPath,
      args: [ENGINE_CHILD, 'serve'],
      env: { SANDBOX_ENGINE: JSON.stringify(engineFiles(settings)) },
      engine: this.#storeOf(conversationId),
    })
    if (!command.enforced) refuse('unavailable', 'container engines run behind a wall only, and this machine has none')
    return { ...command, limits: countedFor(host, conversationId) }
  }

  async #end(conversationId: string): Promise<void> {
    const engine = this.#engines.get(conversationId)
    this.#engines.delete(conversationId)
    await engine?.end()
  }
}

/** Removes a folder in a process of its own: an image may have a hundred thousand files. */
const remove = async (folder: string): Promise<void> => {
  if (!(await stat(folder).catch(() => undefined))) return
  const { code, stderr } = await run(await needProgram('rm'), ['-rf', '--', folder], { cwd: '/', env: await ownEnv() })
  if (code !== 0) throw new Error(`removing container images failed: ${stderr.slice(0, 300)}`)
}
