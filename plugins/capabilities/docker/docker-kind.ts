import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { ownProgram } from '../../../sdk/node/programs/own-programs.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { runWalled, wallKind } from '../../../sdk/node/wall/wall.js'
import type { EnvironmentAsked, TurnVariables } from '../contract.js'
import type { Entries } from '../records/entries.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'
import { ENGINE_CHILD } from './engine-process.js'
import { engineFiles, engineSettings, type EngineSettings } from './engine-settings.js'
import type { ContainerEngines } from './engines.js'

const LOOK_MS = 40_000
const MOST_OUTPUT = 64 * 1024
/** How long an engine that started counts as one that would again. */
const TRUSTED_MS = 300_000
const ATTEMPTS = 'engine-attempts'

/** Where a turn sees the socket of its engine. */
const FOLDER = '/run/sandbox-engine'
const SOCKET = `unix://${FOLDER}/engine.sock`

/** The programs of an engine, with the packages of Debian that bring them. */
const PROGRAMS = { podman: 'podman', conmon: 'conmon', crun: 'crun', unshare: 'util-linux' } as const

/** Why no engine starts on this machine, with the command that installs what is missing. */
export const missingForEngine = async (): Promise<string | undefined> => {
  if (process.platform !== 'linux') return 'container engines run on Linux only'
  const missing: string[] = []
  for (const [program, name] of Object.entries(PROGRAMS))
    if ((await ownProgram(program)) === undefined) missing.push(name)
  // Without bubblewrap the superuser gives no program namespaces of its own.
  if (process.getuid?.() === 0 && (await wallKind()) !== 'bwrap') missing.push('bubblewrap')
  if (missing.length === 0) return undefined
  return `${missing.join(', ')} not installed: apt-get install ${missing.join(' ')}`
}

const requirePrograms = async (): Promise<void> => {
  const missing = await missingForEngine()
  if (missing !== undefined) refuse('missing-program', missing)
}

/** The settings of the engine that is connected, or why none is. */
export const connectedEngine = async (entries: Entries): Promise<EngineSettings | string> => {
  const found = (await entries.all()).find(({ kind }) => kind === 'docker')
  if (!found) return 'the container engine is not connected any more'
  const { entry, problem } = await entries.open(found)
  return problem ? problem.detail! : engineSettings(entry)
}

type Deps = Pick<Host, 'place'>

/** Starts an engine behind a wall without a network and asks it what it is; ends it. */
const meetEngine = async (
  { place }: Deps,
  settings: EngineSettings,
  signal: AbortSignal,
): Promise<{ readonly version: string; readonly driver: string }> => {
  await requirePrograms()
  const { workspace, data, hidden, grants, folder } = place
  const base = join(folder, ATTEMPTS)
  await mkdir(base, { recursive: true, mode: 0o700 })
  const store = await realpath(await mkdtemp(join(base, 'a-')))
  try {
    const { code, timedOut, stdout, stderr } = await runWalled(
      {
        workspace: await realpath(workspace),
        data,
        hide: hidden,
        ...(grants && { grants }),
        cwd: '/',
        exposed: [store],
        sealed: true,
        ordinary: true,
        offline: true,
        env: listEnv({ SANDBOX_ENGINE: JSON.stringify(engineFiles(settings)) }),
      },
      process.execPath,
      [ENGINE_CHILD, 'look', store],
      { signal, timeoutMs: LOOK_MS, maxBytes: MOST_OUTPUT },
    )
    const said = stderr.trim().split('\n').at(-1)?.slice(0, 300) ?? ''
    if (timedOut) refuse('dependency', `the container engine did not answer within ${LOOK_MS / 1000} s`)
    if (code !== 0) refuse('dependency', `the container engine does not start here: ${said || `exit code ${code}`}`)
    return JSON.parse(stdout.toString()) as { version: string; driver: string }
  } finally {
    await rm(store, { recursive: true, force: true })
  }
}

/** Removes what attempts to start an engine left that the end of the daemon cut off. */
export const sweepEngineAttempts = (folder: string): Promise<void> =>
  rm(join(folder, ATTEMPTS), { recursive: true, force: true })

/** The container engine of the sandbox: one connection, with an engine for each conversation. */
export const dockerKind = (host: Deps, engines: ContainerEngines, entries: () => Entries): KindHandler => {
  let met = 0
  return {
    kind: 'docker',
    singleton: true,
    missing: missingForEngine,
    secretFields: () => [],
    mainSecret: () => undefined,
    label: () => undefined,
    check: async entry => {
      engineSettings(entry)
      await requirePrograms()
    },
    apply: async (entry, report, signal) => {
      report('starting an engine behind the wall')
      const { version, driver } = await meetEngine(host, engineSettings(entry), signal)
      met = Date.now()
      report(`podman ${version} answers; it keeps images with ${driver}`)
      report('turns find an engine of their own in DOCKER_HOST')
      // Those that run have the settings of before.
      await engines.restart()
      return activeStatus()
    },
    probe: async (entry, signal, thorough) => {
      try {
        await requirePrograms()
        if (thorough || Date.now() - met > TRUSTED_MS) await meetEngine(host, engineSettings(entry), signal)
        met = Date.now()
        return activeStatus()
      } catch (error) {
        met = 0
        if (!(error instanceof Refusal)) throw error
        return failingStatus(error.message, error.reason === 'missing-program' ? 'missing-program' : 'crashed')
      }
    },
    forget: async () => {
      const rest = (await entries().all()).some(({ kind }) => kind === 'docker')
      if (!rest) await engines.forgetAll()
    },
    rename: async () => undefined,
  }
}

const NOTE = [
  'A container engine answers at DOCKER_HOST with the interface of Docker: use docker, or podman --remote.',
  'It is of this conversation alone. Containers see no more of the machine than your commands do, and share the',
  'network of the conversation: a server in one is at localhost and its own port, also for other containers.',
  'All users of a container are one user outside; no device, control group or other network can be given to it.',
].join('\n')

/** What the programs of a turn get of the connected engine. */
export const engineForTurn = async (
  engines: ContainerEngines,
  { conversationId, trust, reach = '' }: EnvironmentAsked,
  entry: OpenEntry | undefined,
): Promise<TurnVariables> =>
  entry === undefined
    ? { variables: {} }
    : {
        variables: { DOCKER_HOST: SOCKET, CONTAINER_HOST: SOCKET },
        files: [{ from: await engines.open(conversationId, trust && { trust, reach }), to: FOLDER }],
        notes: [{ title: 'Containers', text: NOTE }],
      }
