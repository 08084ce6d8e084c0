import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, open, readdir, realpath, rm, stat, type FileHandle } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { ignored, Refusal, refuse, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { countedFor } from '../../../sdk/node/limits/counted.js'
import { needProgram, ownEnv, run } from '../../../sdk/node/programs/run.js'
import { conversationHome } from '../../../sdk/node/wall/home.js'
import type { Trust } from '../../../sdk/node/wall/spec.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { ENGINE_CHILD, EngineProcess, viewOf } from './engine-process.js'
import { engineFiles, type EngineSettings } from './engine-settings.js'

/** How long an engine stays when no turn of its conversation runs. */
const IDLE_MS = 600_000
const MOST_WAITING = 64
/** How long somebody may take to read a refusal. */
const REFUSED_MS = 5000
const DOOR = 'engine.sock'
const DOORS = 'engine-doors'
const STORES = 'engine-stores'

interface Door {
  readonly server: Server
  /** The folder; its path can be longer than the path of a socket may be. */
  readonly folder: FileHandle
  /** Connections that no engine has yet. */
  readonly waiting: Set<Socket>
}

type EnginesHost = Pick<Host, 'call' | 'serves' | 'place' | 'signal' | 'log'>

/** What a turn may reach. */
interface TurnReach {
  readonly trust: Trust
  /** The persona and the folders, as text. */
  readonly reach: string
}

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
  readonly #doors = new Map<string, Door>()
  readonly #engines = new Map<string, EngineProcess>()
  /** The name of what the turn that began last reaches. */
  readonly #reaches = new Map<string, string>()
  readonly #mutex = new KeyedMutex()
  readonly #idle = new Map<string, NodeJS.Timeout>()

  constructor(deps: EnginesDeps) {
    this.#deps = deps
    deps.host.signal.addEventListener('abort', () => void this.endAll(), { once: true })
  }

  /**
   * Opens the socket of a conversation's engine for a turn; returns the real path of its folder. An engine of turns
   * that reach something else, or whose work is of another trust, ends with its containers, and what these turns left
   * finds no other.
   */
  open(conversationId: string, turn?: TurnReach): Promise<string> {
    return this.#mutex.with(conversationId, async () => {
      const running = this.#engines.get(conversationId)
      const reach = turn ? nameOf(turn) : (this.#reaches.get(conversationId) ?? nameOf())
      const others = this.#reaches.get(conversationId) !== reach || (running && turn && running.trust !== turn.trust)
      if (others) await this.#close(conversationId)
      this.#reaches.set(conversationId, reach)
      clearTimeout(this.#idle.get(conversationId))
      this.#idle.delete(conversationId)
      const path = join(this.#doorsOf(conversationId), reach)
      if (!this.#doors.has(conversationId)) this.#doors.set(conversationId, await this.#open(conversationId, path))
      return realpath(path)
    })
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
    await this.#mutex.with(conversationId, () => this.#close(conversationId))
  }

  /** Ends every engine with its containers: who connects next finds one with the settings of then. */
  async restart(): Promise<void> {
    await Promise.all([...this.#engines.keys()].map(id => this.#mutex.with(id, () => this.#end(id))))
  }

  /** Ends the engine of a conversation, and removes its images and containers. */
  async forget(conversationId: string): Promise<void> {
    await this.release(conversationId)
    await remove(this.#storeOf(conversationId))
    await remove(this.#doorsOf(conversationId))
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

  /** Removes what is left of conversations that are gone. */
  async sweep(): Promise<void> {
    const { data, folder } = this.#deps.host.place
    for (const kind of [DOORS, STORES])
      for (const id of await readdir(join(folder, kind)).catch(() => [] as string[]))
        await this.#mutex.with(id, async () => {
          // A first turn opens its socket before its home is there.
          if (this.#doors.has(id) || (await stat(conversationHome(data, id)).catch(() => undefined))) return
          await remove(join(folder, kind, id))
        })
  }

  #doorsOf(conversationId: string): string {
    return join(this.#deps.host.place.folder, DOORS, conversationId)
  }

  #storeOf(conversationId: string): string {
    return join(this.#deps.host.place.folder, STORES, conversationId)
  }

  async #open(conversationId: string, path: string): Promise<Door> {
    await mkdir(path, { recursive: true, mode: 0o700 })
    await rm(join(path, DOOR), { force: true })
    const folder = await open(path, 'r')
    const waiting = new Set<Socket>()
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, socket => {
      if (waiting.size >= MOST_WAITING) return void socket.destroy()
      waiting.add(socket)
      socket.once('close', () => waiting.delete(socket))
      socket.on('error', () => socket.destroy())
      void this.#serve(conversationId, socket).then(handed => void (handed && waiting.delete(socket)))
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

  /** Answers whether an engine has the connection. */
  async #serve(conversationId: string, socket: Socket): Promise<boolean> {
    try {
      const engine = await this.#mutex.with(conversationId, () => this.#engine(conversationId))
      if (!socket.destroyed) await engine.hand(socket)
      return true
    } catch (error) {
      if (!(error instanceof Refusal))
        this.#deps.host.log.warn('starting a container engine failed', { error: String(error) })
      const message = error instanceof Refusal ? error.message : 'the container engine could not be started'
      const body = JSON.stringify({ message })
      // Its end is noticed only where it is read.
      const late = setTimeout(() => socket.destroy(), REFUSED_MS)
      socket.once('close', () => clearTimeout(late)).resume()
      socket.end(
        'HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n'
          + `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      )
      return false
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
    const view = command && (await viewOf(command))
    if (running && !running.over && (view === undefined || running.view === view)) return running
    await this.#end(conversationId)
    const engine = await EngineProcess.start(command!, view!)
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

  async #close(conversationId: string): Promise<void> {
    const door = this.#doors.get(conversationId)
    this.#doors.delete(conversationId)
    this.#reaches.delete(conversationId)
    for (const socket of door?.waiting ?? []) socket.destroy()
    // Its end is not waited for: Node waits for connections that the engine has, and a program may keep one for hours.
    door?.server.close()
    await this.#end(conversationId)
    await door?.folder.close()
  }

  async #end(conversationId: string): Promise<void> {
    const engine = this.#engines.get(conversationId)
    this.#engines.delete(conversationId)
    await engine?.end()
  }
}

/** The name of the folder in which the turns that reach the same find the socket. */
const nameOf = (turn?: TurnReach): string => hash('sha256', JSON.stringify(turn ?? {})).slice(0, 16)

/**
 * Removes a folder in a process of its own: an image may have a hundred thousand files. Folders of an image may be
 * read-only, from which the superuser alone removes something.
 */
const remove = async (folder: string): Promise<void> => {
  if (!(await stat(folder).catch(() => undefined))) return
  const options = { cwd: '/', env: await ownEnv() }
  if (process.getuid?.() !== 0) await run(await needProgram('chmod'), ['-R', 'u+rwX', '--', folder], options)
  const { code, stderr } = await run(await needProgram('rm'), ['-rf', '--', folder], options)
  if (code !== 0) throw new Error(`removing container images failed: ${stderr.slice(0, 300)}`)
}
