import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createAuth, type Auth } from './auth/auth.js'
import { loginSocketPath, openLoginSocket } from './auth/socket.js'
import { Boot } from './boot.js'
import { Calls } from './calls.js'
import type { Config } from './config/config.js'
import { checkedWall } from './config/checked-wall.js'
import { callsForOthers } from './extensions/called-for.js'
import { describeDaemon } from './http/describe.js'
import { createHttpServer, listen } from './http/server.js'
import { readIdentity } from './storage/identity.js'
import { ownListenerCalls } from './http/listeners.js'
import { liveCalls } from './streams/live-calls.js'
import { EventBus } from './events.js'
import { grantsOf } from './storage/grants.js'
import { App } from './http/app.js'
import { serveOwn } from './http/own.js'
import { OpenStreams } from './streams/open-streams.js'
import type { Group } from './group.js'
import { loadGroups, stopGroups } from './loader.js'
import type { LineSocket } from './auth/line-socket.js'
import { Live } from './streams/live.js'
import { Connections } from './http/connections.js'
import { sweepUnfinished } from '../sdk/node/unfinished.js'
import { groupLog } from '../sdk/node/logs/line.js'
import { redactCalls } from '../sdk/node/access/stored-values.js'
import type { Logger } from './logs/log.js'
import type { KernelServices } from './services.js'
import { FileStore } from './storage/files.js'
import { JournalStore } from '../sdk/node/journal/journal-store.js'
import { carryOut, MOVES } from '../sdk/node/files/moves.js'
import { openSeal } from './storage/seal.js'
import { stateFolder } from '../sdk/node/files/state-folder.js'
import { declareTurnWritable } from '../sdk/node/programs/turn-writable.js'
import { CallFigures } from './http/call-figures.js'
import type { KernelFigures } from '../sdk/kernel.js'
import { openStore } from './storage/store.js'

/** A running daemon. */
export interface Daemon {
  readonly url: string
  readonly socket?: string
  readonly kernel: KernelServices
  readonly auth: Auth
  readonly groups: readonly Group[]
  /** The claim code, to print at the terminal. */
  readonly claim?: string
  /** Resolves when every boot step has ended. */
  readonly ready: Promise<void>
  stop(): Promise<void>
}

export interface DaemonOptions {
  readonly config: Config
  /** The program's folder, which contains `kernel/`, `plugins/` and `sdk/`. */
  readonly root: string
  readonly manifests: string
  readonly log: Logger
  /** Validate every reply against its contract. */
  readonly checked?: boolean
  /** Load only these groups; default: all. */
  readonly only?: readonly string[]
  /** Groups that each run in a separate process, of the program in `root`. */
  readonly apart?: { readonly groups: readonly string[]; readonly root: string }
  /** Stops this daemon and starts a new one; absent when restarting is not supported. */
  readonly restart?: () => void
  /** Prints a line at the terminal; never logged. */
  readonly say?: (line: string) => void
  /** Registers further calls besides those of the groups. */
  readonly extra?: (kernel: KernelServices) => void
}

/**
 * Starts a daemon: storage, identity, groups, listener, then the boot steps. The caller holds the data folder's lock.
 */
export const startDaemon = async ({ config, root, manifests, log, ...options }: DaemonOptions): Promise<Daemon> => {
  const { data, deployment } = config
  declareTurnWritable([config.workspace, data])
  const socketPath = loginSocketPath(data)
  const hidden = [
    dirname(socketPath),
    stateFolder(process.env),
    ...(config.deploymentFile ? [config.deploymentFile] : []),
    ...(deployment.models?.trial?.tokenFile ? [deployment.models.trial.tokenFile] : []),
  ]
  const grants = grantsOf(deployment.wall ?? {}, [data, root, ...hidden])
  declareTurnWritable(grants.write)
  const wall = await checkedWall(config, log)
  const seal = await openSeal(join(data, 'machine.key'))
  const files = new FileStore(join(data, 'files'), seal)
  const store = openStore(config.store)
  const journals = new JournalStore(join(data, 'journals'))
  const failed = (plugin: string, what: string, error: unknown) =>
    log.error({ group: plugin, err: error }, `${what} failed`)
  const boot: Boot = new Boot(failed, () => live.booted())
  const live = new Live({ boot: () => boot.progress() })
  const kernel: KernelServices = {
    calls: new Calls(options.checked ?? false),
    events: new EventBus(failed),
    live,
    boot,
    journals,
    files,
    store: plugin => store.of(plugin),
    log: plugin => groupLog(log, plugin),
  }
  let streams: OpenStreams | undefined
  const connections = new Connections()
  const auth = await createAuth({
    files: files.under('auth'),
    now: Date.now,
    identity: {
      ...deployment.identity,
      claim:
        deployment.identity?.claim
        ?? (isLoopbackHost(config.host) && !deployment.http?.hosts?.length ? 'first' : 'code'),
      local: deployment.identity?.local !== 'off',
    },
    ended: what => {
      streams?.end(what)
      for (const id of [what.sessionId, what.tokenId]) if (id !== undefined) connections.end(id)
      kernel.events.emit('credential.ended', what)
    },
    emit: (event, what) => kernel.events.emit(event, what),
    say: options.say ?? (() => {}),
  })
  streams = new OpenStreams(id => auth.limits.enterStream(id))
  const identity = await readIdentity(files, () => randomBytes(16).toString('hex'))
  let groups: readonly Group[] = []
  let url = ''
  const info = describeDaemon(root, identity, boot, () => groups, wall)
  kernel.calls.add('kernel.info', 'kernel', info)
  kernel.calls.add('kernel.restart', 'kernel', async (_, input) => {
    live.reason = (input as { reason: Live['reason'] }).reason
    options.restart?.()
    return { restarting: options.restart !== undefined }
  })
  const [bodies, others] = callsForOthers(kernel, () => groups)
  const [listening, forgetListeners] = ownListenerCalls(() => (url ? [{ host: config.host, port: portOf(url) }] : []))
  const own = { ...auth.handlers, ...liveCalls(live), ...listening, ...others, ...redactCalls(data) }
  for (const [call, answer] of Object.entries(own))
    kernel.calls.add(call, 'kernel', async (_, input, context) => answer(input as never, context))
  const figures = new CallFigures()
  kernel.calls.add('kernel.figures', 'kernel', async (): Promise<KernelFigures> => ({
    ...streams.counts,
    calls: figures.all(call => kernel.calls.pluginOf(call) ?? 'kernel'),
  }))
  options.extra?.(kernel)
  const carried = await carryOut(join(data, MOVES))
  if (typeof carried === 'object') log.error({ err: carried.undone }, 'a prepared move of files failed and was undone')
  groups = await loadGroups(kernel, {
    manifests,
    root,
    workspace: config.workspace,
    data,
    hidden,
    grants,
    limits: deployment.wall?.limits ?? {},
    previews: { ...deployment.previews, host: config.host },
    publicPages: { ...deployment.public, ...(deployment.http?.publicUrl && { url: deployment.http.publicUrl }) },
    ...(deployment.models && { models: deployment.models }),
    ...(deployment.push && { push: deployment.push }),
    ...(deployment.mounts && { mounts: deployment.mounts }),
    ...(deployment.wallet && { wallet: deployment.wallet }),
    ...(deployment.exit && { exit: deployment.exit }),
    ...(options.only && { only: options.only }),
    ...(options.apart && { apart: options.apart }),
  })

  const uploads = join(data, 'uploads')
  const { http = {}, public: { host: publicHost } = {} } = deployment
  rmSync(uploads, { recursive: true, force: true })
  const app = new App({ kernel, auth, streams, bodies, connections, figures, log, uploads, http, publicHost })
  for (const group of groups) app.add(group)
  serveOwn(app, root, identity, boot, groups)
  const server = createHttpServer(app, connections)
  const note = join(data, 'daemon.json')
  let socket: LineSocket | undefined
  const stop = async () => {
    boot.end()
    try {
      server.close()
      streams.endSockets()
      await stopGroups(groups)
      await live.stop()
      streams.endAll()
      await socket?.close()
    } finally {
      server.closeAllConnections()
      forgetListeners()
      await Promise.allSettled([auth.close(), journals.shutdown(), store.close()])
      rmSync(note, { force: true })
    }
  }
  try {
    url = await listen(server, config)
    if (deployment.identity?.local !== 'off')
      socket = await openLoginSocket({
        path: socketPath,
        data,
        base: () => deployment.http?.publicUrl ?? url,
        auth,
        log,
      })
    writeFileSync(
      note,
      JSON.stringify({
        url,
        pid: process.pid,
        workspace: config.workspace,
        grants,
        wall,
        ...(socket && { socket: socket.path }),
      }),
      { mode: 0o600 },
    )
  } catch (error) {
    await stop()
    throw error
  }
  const ready = boot
    .run(groups.map(({ manifest }) => manifest.name))
    .then(() => kernel.events.announce('daemon.ready', { ms: Date.now() - boot.startedAt }))
  // Not awaited: temporary files of a killed daemon are never read.
  void ready
    .then(() => sweepUnfinished(data))
    .catch(error => log.warn({ err: error }, 'half-written files of an earlier run could not be removed'))
  return {
    url,
    ...(socket && { socket: socket.path }),
    ...(auth.claim !== undefined && { claim: auth.claim }),
    kernel,
    auth,
    groups,
    ready,
    stop,
  }
}

const portOf = (url: string): number => Number(new URL(url).port || 80)

const isLoopbackHost = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.')
