// Runs behind the wall of a conversation: starts the container engine there, and forwards to it the connections that
// the daemon hands over. With `look` it starts the engine, says what it is, and ends; with `runtime` it changes the
// settings of a container that is about to be created.
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { ContainerNames, containerNamesOf, type EngineFields } from './container-names.js'
import { ENGINE_FOLDER, ENGINE_SCRIPT, ENGINE_SOCKET, runtimeScript } from './engine-script.js'

const START_MS = 25_000
const LOOK_AGAIN_MS = 25
const MOST_HEAD = 64 * 1024
const MOST_BODY = 8 * 1024 * 1024
const MOST_CONNECTIONS = 256

/** A mount of a container (OCI runtime specification, Mounts). */
interface ContainerMount {
  type?: string
  destination: string
  source?: string
  options?: string[]
}
interface ContainerConfig {
  mounts?: ContainerMount[]
}

const boundInto = ({ destination }: ContainerMount, source: string, ...options: string[]): ContainerMount => ({
  destination,
  type: 'bind',
  source,
  options: ['rbind', 'nosuid', 'noexec', 'nodev', ...options],
})

/**
 * The system lets nobody behind a wall mount a /proc or a /sys of their own, whose parts the wall makes read-only: a
 * container gets those of the wall.
 */
const mountsBehindWall = (mounts: readonly ContainerMount[]): ContainerMount[] =>
  mounts.flatMap(mount => {
    if (mount.type === 'proc') return [boundInto(mount, '/proc')]
    if (mount.type === 'sysfs') return [boundInto(mount, '/sys', 'ro')]
    return mount.type === 'cgroup' || mount.type === 'cgroup2' ? [] : [mount]
  })

const changeConfig = (path: string): void => {
  const config = JSON.parse(readFileSync(path, 'utf8')) as ContainerConfig
  writeFileSync(path, JSON.stringify({ ...config, mounts: mountsBehindWall(config.mounts ?? []) }))
}

/** Starts the engine; resolves when it answers. */
const start = async (store: string): Promise<void> => {
  mkdirSync(ENGINE_FOLDER, { mode: 0o700 })
  const { SANDBOX_ENGINE: files = '{}', ...env } = process.env
  const conf = JSON.parse(files) as { [name: string]: string }
  const engine = spawn(
    'unshare',
    ['--user', '--map-root-user', '--mount', '--', 'sh', '-c', ENGINE_SCRIPT, 'engine', store],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...env,
        CONF_CONTAINERS: conf['containers.conf'],
        CONF_REGISTRIES: conf['registries.conf'],
        CONF_RUNTIME: runtimeScript(process.execPath, process.argv[1]!),
      },
    },
  )
  let said = ''
  engine.stderr.setEncoding('utf8').on('data', (piece: string) => (said = (said + piece).slice(-2000)))
  let over = false
  engine.once('error', error => fail(`unshare could not be started: ${error.message}`))
  engine.once('close', code => {
    over = true
    fail(said.trim() || `the engine ended with exit code ${code}`)
  })
  const end = Date.now() + START_MS
  while (!over && !(await answers())) {
    if (Date.now() > end) fail(`the engine does not answer: ${said.trim()}`)
    await delay(LOOK_AGAIN_MS)
  }
}

const fail = (sentence: string): never => {
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}

const ask = (path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    request({ socketPath: ENGINE_SOCKET, path, headers: { host: 'engine' } }, answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      answer.once('end', () => resolve(text)).once('error', reject)
    })
      .once('error', reject)
      .end()
  })

const answers = (): Promise<boolean> =>
  ask('/_ping').then(
    text => text.startsWith('OK'),
    () => false,
  )

const look = async (store: string): Promise<void> => {
  await start(store)
  const { ServerVersion: version, Driver: driver } = JSON.parse(await ask('/v1.40/info')) as { [name: string]: string }
  process.stdout.write(`${JSON.stringify({ version, driver })}\n`, () => process.exit(0))
}

const names = new ContainerNames()

/** Networks that an engine behind the wall cannot make: its containers have that of their conversation instead. */
const isMade = (mode: unknown): boolean => typeof mode !== 'string' || !/^(?:none|host|container:|ns:)/.test(mode)

const inNetworkOfConversation = (first: string, fields: EngineFields): EngineFields => {
  if (first.includes('/libpod/')) {
    const mode = (fields.netns as EngineFields | undefined)?.nsmode
    const stays = mode === 'none' || mode === 'host' || mode === 'container' || mode === 'path' || mode === 'pod'
    if (stays) return fields
    const { Networks: _networks, portmappings: _ports, cni_networks: _names, hostadd, ...rest } = fields
    const hosts = names.hosts(hostadd, containerNamesOf(first, fields))
    return { ...rest, netns: { nsmode: 'host' }, hostadd: hosts, env: withoutProxy(fields.env, names.all) }
  }
  const host = (fields.HostConfig ?? {}) as EngineFields
  if (!isMade(host.NetworkMode)) return fields
  const { PortBindings: _bindings, Links: _links, ExtraHosts: extra, ...kept } = host
  const { NetworkingConfig: _networking, ...rest } = fields
  const ExtraHosts = names.hosts(extra, containerNamesOf(first, fields))
  return { ...rest, HostConfig: { ...kept, NetworkMode: 'host', ExtraHosts } }
}

/** podman gives containers the proxy of the conversation, which knows nothing of the names of containers. */
const withoutProxy = (env: unknown, hosts: readonly string[]): EngineFields => {
  const direct = [process.env.no_proxy ?? process.env.NO_PROXY, ...hosts].filter(Boolean).join(',')
  return { no_proxy: direct, NO_PROXY: direct, ...(env as EngineFields | undefined) }
}

/** Joining and leaving networks that are not made: every container has that of the conversation already. */
const JOINS = /^POST (?:\/v[\d.]+)?(?:\/libpod)?\/networks\/[^/\s?]+\/(?:dis)?connect[ ?]/
const CREATES = /^POST (?:\/v[\d.]+)?(?:\/libpod)?\/containers\/create[ ?]/
/** Requests whose connection becomes the input and output of a container. */
const ATTACHES = /^POST \S+\/(?:attach|exec\/[^/\s]+\/start)[ ?]/

const said = (client: Socket, status: string, message?: string): void => {
  const body = JSON.stringify(message === undefined ? {} : { message })
  const head = `content-type: application/json\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}`
  client.end(`HTTP/1.1 ${status}\r\n${head}\r\n\r\n${body}`)
}

interface Begun {
  readonly head: string
  readonly rest: Buffer
}

/** Reads the head of a request; undefined: the connection ended before, or it is too long. */
const headOf = async (client: Socket): Promise<Begun | undefined> => {
  let read: Buffer = Buffer.alloc(0)
  while (read.length <= MOST_HEAD) {
    const end = read.indexOf('\r\n\r\n')
    if (end >= 0) return { head: read.subarray(0, end).toString('latin1'), rest: read.subarray(end + 4) }
    const piece = await nextOf(client)
    if (!piece) return undefined
    read = Buffer.concat([read, piece])
  }
  return undefined
}

const bodyOf = async (client: Socket, begun: Buffer, length: number): Promise<Buffer | undefined> => {
  const parts = [begun]
  let size = begun.length
  while (size < length) {
    const piece = await nextOf(client)
    if (!piece) return undefined
    parts.push(piece)
    size += piece.length
  }
  return Buffer.concat(parts)
}

const nextOf = (client: Socket): Promise<Buffer | undefined> =>
  new Promise(resolve => {
    const over = (piece?: Buffer) => {
      client.pause()
      client.off('data', over).off('end', ended).off('close', ended)
      resolve(piece)
    }
    const ended = () => over()
    client.on('data', over).once('end', ended).once('close', ended)
    client.resume()
  })

/** A connection carries one request: what follows an attached one is no request. */
const serveOne = async (client: Socket): Promise<void> => {
  const begun = await headOf(client)
  if (!begun) return void client.destroy()
  const [first = '', ...lines] = begun.head.split('\r\n')
  const attaches = ATTACHES.test(first) || lines.some(line => /^upgrade:/i.test(line))
  const kept = attaches ? lines : [...lines.filter(line => !/^connection:/i.test(line)), 'Connection: close']
  const joins = JOINS.test(first)
  if (!joins && !CREATES.test(first)) return forward(client, [first, ...kept], begun.rest)
  const length = Number(/^content-length: *(\d+) *$/im.exec(begun.head)?.[1] ?? Number.NaN)
  if (Number.isNaN(length)) return said(client, '411 Length Required', 'expected a content-length')
  if (length > MOST_BODY) return said(client, '413 Content Too Large', `expected at most ${MOST_BODY} bytes`)
  const body = await bodyOf(client, begun.rest, length)
  if (!body) return void client.destroy()
  if (joins) return said(client, '200 OK')
  let changed: string
  try {
    changed = JSON.stringify(inNetworkOfConversation(first, JSON.parse(body.toString()) as EngineFields))
  } catch {
    return said(client, '400 Bad Request', 'expected an object as JSON')
  }
  const rest = kept.filter(line => !/^content-length:/i.test(line))
  forward(client, [first, ...rest, `Content-Length: ${Buffer.byteLength(changed)}`], Buffer.from(changed))
}

const forward = (client: Socket, head: readonly string[], rest: Buffer): void => {
  const far = connect({ path: ENGINE_SOCKET, allowHalfOpen: true }, () => {
    far.write(Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'))
    if (rest.length > 0) far.write(rest)
    client.pipe(far)
    far.pipe(client)
  })
  far.on('error', () => client.destroy())
  client.once('close', () => far.destroy())
}

const serve = async (store: string): Promise<void> => {
  await start(store)
  let open = 0
  process.on('message', (_, socket?: unknown) => {
    const client = socket as Socket | undefined
    if (!client) return
    if (open >= MOST_CONNECTIONS) return void client.destroy()
    open++
    client.once('close', () => open--)
    client.on('error', () => client.destroy())
    client.allowHalfOpen = true
    serveOne(client).catch(() => client.destroy())
  })
  process.once('disconnect', () => process.exit(0))
  process.stdout.write('ready\n')
}

const [, , mode = '', argument = ''] = process.argv
if (mode === 'runtime') changeConfig(argument)
else if (mode === 'look') await look(argument)
else await serve(argument)
