import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { writeAtomic } from '../../node/files/files.js'
import { plain, quoted } from '../terminal/text.js'
import { EXIT, CommandFailure, type Terminal } from '../verb.js'
import {
  launchdPlist,
  type Service,
  serviceName,
  systemdUnit,
  workspaceOfPlist,
  workspaceOfUnit,
} from './service-unit.js'

/** The state of a service: whether it is running, and whether it starts at sign-in. */
export interface ServiceState {
  readonly active: boolean
  readonly enabled: boolean
}

/** A service manager that keeps programs of a user running. */
export interface Manager {
  /** The path of the unit file of a workspace's service. */
  file(workspace: string): string
  /** The content of the unit file. */
  text(service: Service): string
  /** Fails if the manager does not answer; called before anything is changed. */
  check(command: readonly string[]): Promise<void>
  /** Writes the unit file, and restarts the service. */
  install(service: Service): Promise<void>
  state(workspace: string): Promise<ServiceState>
  /** Stops the service and removes its unit file. */
  remove(workspace: string): Promise<void>
  /** The workspaces that have a service, by its unit file. */
  workspaces(): Promise<string[]>
  /** What the person must do to keep the service running. */
  readonly hint?: string
}

type Surroundings = Pick<Terminal, 'env' | 'signal'>

/** The service manager of a platform; fails with a message on unsupported platforms. */
export const managerOf = (platform: NodeJS.Platform, terminal: Surroundings, command: readonly string[]): Manager => {
  if (platform === 'linux') return systemd(terminal)
  if (platform === 'darwin') return launchd(terminal)
  throw new CommandFailure(
    EXIT.failed,
    `expected Linux with systemd or macOS, found ${platform}: have a process manager of your own `
      + `run ${shellOf(command)}`,
  )
}

const shellOf = (command: readonly string[]): string => command.map(quoted).join(' ')

interface Ran {
  readonly ok: boolean
  readonly out: string
  /** The first line of what went wrong. */
  readonly why: string
}

const runner =
  (program: string, { env, signal }: Surroundings) =>
  (...args: string[]): Promise<Ran> =>
    new Promise(resolve => {
      execFile(program, args, { env, signal, timeout: 30_000, encoding: 'utf8' }, (error, out, err) => {
        const why =
          (error as NodeJS.ErrnoException | null)?.code === 'ENOENT'
            ? `${program} is not installed`
            : plain(err.trim().split('\n')[0] || error?.message || '')
        resolve({ ok: error === null, out: out.trim(), why })
      })
    })

const must = (ran: Ran, what: string): void => {
  if (!ran.ok) throw new CommandFailure(EXIT.failed, `${what} failed: ${ran.why}`)
}

const homeOf = ({ env }: Surroundings): string => env.HOME || homedir()

const write = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(file), { recursive: true })
  await writeAtomic(file, text, { mode: 0o644, flush: true })
}

/** Whether services of the user keep running after they sign out (loginctl linger). */
const lingers = ({ env }: Surroundings): boolean =>
  env.USER !== undefined && existsSync(join('/var/lib/systemd/linger', basename(env.USER)))

/** The workspaces of the unit files of a folder: a file is ours if it has the name of the workspace that it serves. */
const workspacesIn = async (
  folder: string,
  extension: string,
  read: (text: string) => string | undefined,
): Promise<string[]> => {
  const names = await readdir(folder).catch(() => [])
  const found = await Promise.all(
    names
      .filter(name => name.startsWith('sandbox-') && name.endsWith(extension))
      .map(async name => {
        const workspace = read(await readFile(join(folder, name), 'utf8').catch(() => ''))
        return workspace !== undefined && `${serviceName(workspace)}${extension}` === name ? [workspace] : []
      }),
  )
  return found.flat()
}

/** The services of this user; without a service manager, or unit files, there are none. */
export const servicesOf = async (
  terminal: Surroundings,
): Promise<{ readonly workspaces: readonly string[]; readonly manager?: Manager }> => {
  if (process.platform !== 'linux' && process.platform !== 'darwin') return { workspaces: [] }
  const manager = managerOf(process.platform, terminal, [])
  return { workspaces: await manager.workspaces(), manager }
}

const systemd = (terminal: Surroundings): Manager => {
  const systemctl = runner('systemctl', terminal)
  const user = (...args: string[]) => systemctl('--user', '--no-pager', ...args)
  const unit = (workspace: string) => `${serviceName(workspace)}.service`
  const { XDG_CONFIG_HOME: config } = terminal.env
  const folder = join(config && isAbsolute(config) ? config : join(homeOf(terminal), '.config'), 'systemd', 'user')
  const file = (workspace: string) => join(folder, unit(workspace))
  return {
    file,
    text: systemdUnit,
    ...(!lingers(terminal) && { hint: 'it stops when you log out; to keep it running: loginctl enable-linger' }),
    check: async command => {
      const { ok, why } = await user('show-environment')
      if (!ok) {
        throw new CommandFailure(
          EXIT.failed,
          `expected a systemd that runs services of this user, found none (${why}): have a process manager of `
            + `your own run ${shellOf(command)}`,
        )
      }
    },
    install: async service => {
      const name = unit(service.workspace)
      await write(file(service.workspace), systemdUnit(service))
      must(await user('daemon-reload'), 'systemctl --user daemon-reload')
      must(await user('enable', name), `systemctl --user enable ${name}`)
      must(await user('restart', name), `systemctl --user restart ${name}`)
    },
    state: async workspace => {
      const [active, enabled] = await Promise.all([
        user('is-active', unit(workspace)),
        user('is-enabled', unit(workspace)),
      ])
      return { active: active.out === 'active', enabled: enabled.out === 'enabled' }
    },
    workspaces: () => workspacesIn(folder, '.service', workspaceOfUnit),
    remove: async workspace => {
      must(await user('disable', '--now', unit(workspace)), `systemctl --user disable --now ${unit(workspace)}`)
      await rm(file(workspace))
      must(await user('daemon-reload'), 'systemctl --user daemon-reload')
    },
  }
}

const launchd = (terminal: Surroundings): Manager => {
  const launchctl = runner('launchctl', terminal)
  const domain = `gui/${process.getuid?.() ?? 0}`
  const folder = join(homeOf(terminal), 'Library', 'LaunchAgents')
  const file = (workspace: string) => join(folder, `${serviceName(workspace)}.plist`)
  const target = (workspace: string) => `${domain}/${serviceName(workspace)}`
  return {
    file,
    text: launchdPlist,
    check: async command => {
      const { ok, why } = await launchctl('print', domain)
      if (!ok)
        throw new CommandFailure(
          EXIT.failed,
          `expected a launchd that runs programs of this user, found none (${why}): have a process manager of `
            + `your own run ${shellOf(command)}`,
        )
    },
    install: async service => {
      const path = file(service.workspace)
      await write(path, launchdPlist(service))
      // Fails if it is not loaded, which is fine.
      await launchctl('bootout', target(service.workspace))
      must(await launchctl('bootstrap', domain, path), `launchctl bootstrap ${domain} ${path}`)
    },
    state: async workspace => {
      const { ok, out } = await launchctl('print', target(workspace))
      return { active: ok && /\bstate = running\b/.test(out), enabled: ok }
    },
    workspaces: () => workspacesIn(folder, '.plist', workspaceOfPlist),
    remove: async workspace => {
      await launchctl('bootout', target(workspace))
      await rm(file(workspace))
    },
  }
}
