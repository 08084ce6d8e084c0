import { once, EventEmitter } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { BACKEND_LIMITS, type BackendLimits } from '../../../plugins/extensions/backend/process/limits.js'
import type { Backends } from '../../../plugins/extensions/backend/runtime.js'
import type { ExtensionManifest } from '../../../plugins/extensions/manifest/manifest.js'
import type { BackendStatus } from '../../../plugins/extensions/runtime.js'
import type { WallKind } from '../../../sdk/node/wall/wall.js'
import { daemonWith, folderOf, makeWorkspace, root, type Support, type SupportOptions } from '../daemon.js'

/** The extensions of one daemon, as the test set them up. */
class World {
  readonly known = new Set<string>()
  readonly off = new Set<string>()
  readonly settings = new Map<string, { [key: string]: string | number | boolean }>()
  readonly used: string[] = []
  readonly #changes = new EventEmitter().setMaxListeners(0)
  limits: BackendLimits = BACKEND_LIMITS
  wall: WallKind | undefined
  runtime: Backends | undefined

  changed(id: string): void {
    this.#changes.emit('changed', id)
  }

  nextChange(): Promise<unknown> {
    return once(this.#changes, 'changed', { signal: AbortSignal.timeout(60_000) })
  }
}

/** The calls with which backends derive texts of files. */
const DOCUMENTS = ['extensions.documentTypes', 'extensions.document']

const worlds = new Map<string, World>()

/** The world of the daemon with this data folder. */
export const held = (data: string): World => worlds.get(data)!

export const limitsOf = ({ limits, wall }: World): { limits: BackendLimits; wall?: WallKind } => ({
  limits,
  ...(wall && { wall }),
})

/** An extension of a test: its manifest, and the text of its backend. */
export interface TestExtension {
  readonly server: string
  readonly manifest?: ExtensionManifest
  readonly files?: { readonly [path: string]: string }
}

/** A daemon that runs extensions. */
export interface ExtensionDaemon extends Support {
  readonly world: World
  /** Starts an extension, and waits until it is running or has failed. */
  run(id: string, extension: TestExtension): Promise<BackendStatus>
  /** Starts an extension without waiting. */
  begin(id: string, extension: TestExtension): Promise<void>
  /** Waits until the status of an extension fulfils a condition. */
  until(id: string, holds: (status: BackendStatus) => boolean): Promise<BackendStatus>
  /** A request below `/x/<id>`, as the owner; the status and the body as JSON or text. */
  ask(id: string, path: string, init?: RequestInit & { headers?: { [name: string]: string } }): Promise<Asked>
  readonly dataDirOf: (id: string) => string
}

/** The answer to a request. */
export interface Asked {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

/** A daemon with these additional groups, whose extensions the test starts. */
export const extensionDaemon = async (
  t: Test,
  {
    groups = [],
    limits = {},
    wall,
    ...options
  }: SupportOptions & { groups?: readonly string[]; limits?: Partial<BackendLimits>; wall?: WallKind } = {},
): Promise<ExtensionDaemon> => {
  const folder = folderOf(t)
  const [data, workspace, manifests] = ['data', 'workspace', 'manifests'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  mkdirSync(data, { mode: 0o700 })
  makeWorkspace(workspace, options.files, options.git)
  cpSync(join(root, '..', 'manifests'), manifests, { recursive: true })
  const own = join(manifests, 'extensions.json')
  const manifest = JSON.parse(readFileSync(own, 'utf8')) as object
  writeFileSync(
    own,
    JSON.stringify({
      ...{ ...manifest, boot: true, entry: 'test/support/extensions/plugin.js', routes: {} },
      calls: [
        'extensions.serve',
        'extensions.tools',
        'extensions.tool',
        'extensions.answerOffer',
        'extensions.answerPayment',
        ...DOCUMENTS,
      ],
    }),
  )
  const world = new World()
  world.limits = { ...BACKEND_LIMITS, ...limits }
  world.wall = wall
  worlds.set(data, world)
  t.teardown(() => worlds.delete(data))
  const daemon = await daemonWith(t, ['extensions', ...groups], { ...options, data, workspace, manifests })
  const dataDirOf = (id: string) => join(data, 'extension-data', id)
  const begin = async (id: string, { server, manifest = {}, files = {} }: TestExtension) => {
    const dir = join(folder, 'code', id)
    for (const [path, text] of Object.entries({ 'server.js': server, ...files })) {
      mkdirSync(dirname(join(dir, path)), { recursive: true })
      writeFileSync(join(dir, path), text)
    }
    mkdirSync(dataDirOf(id), { recursive: true, mode: 0o700 })
    world.known.add(id)
    await world.runtime!.start({
      id,
      version: '1.0.0',
      source: 'workspace',
      dir,
      dataDir: dataDirOf(id),
      revision: 'r1',
      manifest: { server: 'server.js', ...manifest },
    })
  }
  const until = async (id: string, holds: (status: BackendStatus) => boolean) => {
    for (;;) {
      const changed = world.nextChange()
      const status = world.runtime!.status(id)
      if (status && holds(status)) {
        changed.catch(() => {})
        return status
      }
      await changed
    }
  }
  return {
    ...daemon,
    world,
    begin,
    until,
    dataDirOf,
    run: async (id, extension) => {
      await begin(id, extension)
      return until(id, ({ state }) => state !== 'starting')
    },
    ask: async (id, path, init) => {
      const response = await daemon.fetch(`/x/${id}${path}`, init)
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
      return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
    },
  }
}
