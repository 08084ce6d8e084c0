import { access, realpath, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { printResult } from '../terminal/asked.js'
import { daemonOn, type Running } from '../daemon/daemon.js'
import { OF_NPM, SELF } from '../terminal/own-name.js'
import { SERVE } from './serve.js'
import { managerOf, type Manager } from '../daemon/service-manager.js'
import { type Service, serviceName } from '../daemon/service-unit.js'
import { oneLine, plain } from '../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { say } from '../terminal/write.js'
import { programFile } from '../../node/programs/package.js'

const READY_WITHIN = 15_000
const ASK_EVERY = 250

/** Keeps a daemon running: the system starts it at sign-in and after a crash. */
export const service: Verb = {
  name: 'service',
  usage: '[status | install | remove]',
  summary: 'run a daemon as a service: started at sign-in, and restarted after a crash',
  examples: ['service', 'service install', 'service install --workspace ~/code --port 8788', 'service remove'],
  notes: [
    'It uses a systemd user unit on Linux and a launch agent on macOS. Each workspace has its own service.',
    'install takes the options of serve, and variables such as SANDBOX_WORKSPACE and SANDBOX_PORT that are set now. '
      + 'The unit file contains no secrets.',
  ],
  flags: {
    ...SERVE,
    print: { help: 'install: print the unit file and change nothing' },
    json: { help: 'print JSON, one value a line' },
  },
  most: 1,
  run: async (terminal, given) => {
    const [what = 'status'] = given.args
    if (what !== 'install' && what !== 'status' && what !== 'remove')
      misused(`expected service ${'status, service install or service remove'}, found service ${plain(what)}`)
    if (given.on('print') && what !== 'install') misused('--print: expected service install')
    const described = await serviceOf(terminal, given)
    const manager = managerOf(process.platform, terminal, described.command)
    if (given.on('print'))
      return printResult(
        terminal,
        given,
        { name: serviceName(described.workspace), text: manager.text(described) },
        ({ text }) => text.trimEnd(),
      )
    await manager.check(described.command)
    if (what === 'install') return install(terminal, given, manager, described)
    const { workspace } = described
    const file = manager.file(workspace)
    if (
      !(await access(file).then(
        () => true,
        () => false,
      ))
    ) {
      throw new CommandFailure(
        EXIT.failed,
        `no service keeps a daemon on ${oneLine(workspace)}; ${SELF} service install makes one`,
      )
    }
    if (what === 'status') return status(terminal, given, manager, workspace)
    await manager.remove(workspace)
    return printResult(
      terminal,
      given,
      { removed: serviceName(workspace) },
      ({ removed }) => `removed ${removed}; its daemon is stopped, its data stays`,
    )
  },
}

const install = async (
  terminal: Terminal,
  given: GivenArguments,
  manager: Manager,
  described: Service,
): Promise<number> => {
  const { workspace } = described
  const other = await daemonOn(terminal, workspace)
  if (other && !(await manager.state(workspace)).active) {
    throw new CommandFailure(
      EXIT.failed,
      `a daemon already runs on ${oneLine(workspace)} at ${other.url} (process ${other.pid}): stop it, then `
        + 'install the service',
    )
  }
  await manager.install(described)
  const working = () => started(terminal, workspace, other?.pid)
  const daemon = await (terminal.sign ? terminal.sign.during(working) : working())
  const name = serviceName(workspace)
  if (!daemon)
    throw new CommandFailure(
      EXIT.failed,
      `${name} is installed, but no daemon answers within ${READY_WITHIN / 1000} s; see ${SELF} service status and `
        + 'the system log',
    )
  if (manager.hint && !given.on('json')) say(terminal, `${manager.hint}\n`)
  return printResult(
    terminal,
    given,
    { name, file: manager.file(workspace), workspace, url: daemon.url },
    () => `${name} runs at ${daemon.url} for ${oneLine(workspace)}`,
  )
}

/** Waits until the daemon answers; `before` is the process that it replaces. */
const started = async (
  terminal: Terminal,
  workspace: string,
  before: number | undefined,
): Promise<Running | undefined> => {
  for (const until = Date.now() + READY_WITHIN; Date.now() < until;) {
    const daemon = await daemonOn(terminal, workspace)
    if (daemon && daemon.pid !== before) return daemon
    await delay(ASK_EVERY, undefined, { signal: terminal.signal })
  }
  return undefined
}

const status = async (
  terminal: Terminal,
  given: GivenArguments,
  manager: Manager,
  workspace: string,
): Promise<number> => {
  const [state, daemon] = await Promise.all([manager.state(workspace), daemonOn(terminal, workspace)])
  const found = {
    name: serviceName(workspace),
    file: manager.file(workspace),
    workspace,
    ...state,
    ...(daemon && { url: daemon.url }),
  }
  await printResult(terminal, given, found, ({ name, active, enabled }) => {
    const runs = active ? `runs${daemon ? ` at ${daemon.url}` : ''}` : 'does not run'
    return `${name} ${runs} for ${oneLine(workspace)}${enabled ? '' : ', and does not start by itself'}`
  })
  return state.active ? EXIT.ok : EXIT.failed
}

/** The environment variables passed to the service; any other may be secret. */
const PASSED = ['XDG_STATE_HOME', 'SANDBOX_CHROMIUM'] as const

const serviceOf = async (terminal: Terminal, given: GivenArguments): Promise<Service> => {
  const { cwd, env } = terminal
  const chosen = (name: string): string | undefined =>
    given.text(name) ?? (env[`SANDBOX_${name.toUpperCase().replaceAll('-', '_')}`] || undefined)
  const path = (name: string): string | undefined =>
    chosen(name) === undefined ? undefined : resolve(cwd, chosen(name)!)
  const folder = path('workspace') ?? cwd
  const workspace = await realpath(folder).catch((error: NodeJS.ErrnoException) =>
    misused(`--workspace: ${plain(folder)} cannot be read (${error.code})`),
  )
  if (!(await stat(workspace)).isDirectory())
    misused(`--workspace: expected a folder, found a file at ${plain(folder)}`)
  const config = path('config')
  if (config !== undefined)
    await access(config).catch((error: NodeJS.ErrnoException) =>
      misused(`--config: ${plain(config)} cannot be read (${error.code})`),
    )
  const portOf = (name: string): string | undefined => {
    const port = chosen(name)
    if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) < 65_536))
      misused(`--${name}: expected a number from 0 to 65535, found ${plain(port)}`)
    return port
  }
  const options = {
    workspace,
    data: path('data'),
    host: chosen('host'),
    port: portOf('port'),
    'preview-port': portOf('preview-port'),
    store: storeOf(chosen('store')),
    'public-url': chosen('public-url'),
    config,
  }
  const flags = [
    ...Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(given.on('no-wall') || env.SANDBOX_NO_WALL ? ['--no-wall'] : []),
  ]
  const programs = (env.PATH ?? '')
    .split(delimiter)
    .filter(each => each !== '' && !OF_NPM.test(each))
    .join(delimiter)
  const passed = PASSED.flatMap(name => (env[name] ? [[name, env[name]] as const] : []))
  return {
    workspace,
    command: [process.execPath, programFile('kernel/main.js'), ...flags],
    env: { PATH: programs, ...Object.fromEntries(passed) },
  }
}

const storeOf = (store: string | undefined): string | undefined => {
  if (store === undefined || !URL.parse(store)?.password) return store
  return misused(
    '--store: expected an address without a password, since others may read the unit file: '
      + 'leave it out, and give the service SANDBOX_STORE from a file that only you can read (EnvironmentFile= in '
      + 'a drop-in of systemd)',
  )
}
