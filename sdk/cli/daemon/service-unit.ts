import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { misused } from '../verb.js'

/** A daemon to run as a service. Contains no secrets, since others may read unit files. */
export interface Service {
  readonly workspace: string
  /** The program and its arguments. */
  readonly command: readonly string[]
  readonly env: { readonly [name: string]: string }
}

/** The name of a workspace's service: readable, and unique for each workspace. */
export const serviceName = (workspace: string): string => {
  const words = basename(workspace)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 40)
  return ['sandbox', ...(words ? [words] : []), createHash('sha256').update(workspace).digest('hex').slice(0, 8)].join(
    '-',
  )
}

/**
 * The systemd user unit of a service.
 *
 * `KillMode=process` stops only the daemon, which ends its own children; tmux terminals keep running.
 */
export const systemdUnit = ({ workspace, command, env }: Service): string => `[Unit]
Description=Sandbox daemon of ${specifiers(oneLineOnly(workspace))}

[Service]
Type=exec
${Object.entries(env)
  .map(([name, value]) => `Environment=${systemdWord(`${name}=${value}`)}\n`)
  .join('')}ExecStart=:${startable(command).map(systemdWord).join(' ')}
Restart=on-failure
RestartSec=2
TimeoutStopSec=20
KillMode=process

[Install]
WantedBy=default.target
`

/** systemd rejects program paths with quotes or backslashes; a shell accepts them. */
const startable = (command: readonly string[]): readonly string[] =>
  /["'\\]/.test(command[0] ?? '') ? ['/bin/sh', '-c', 'exec "$0" "$@"', ...command] : command

const oneLineOnly = (text: string): string =>
  /[\u0000-\u001f\u007f]/.test(text)
    ? misused(`expected text without control characters for a service, found ${JSON.stringify(text)}`)
    : text

const specifiers = (text: string): string => text.replaceAll('%', '%%')

/** Quotes one word of a systemd setting. The colon before a command turns off `$` expansion. */
export const systemdWord = (text: string): string => `"${specifiers(oneLineOnly(text)).replace(/["\\]/g, '\\$&')}"`

/** The property list of a service for launchd. */
export const launchdPlist = ({ workspace, command, env }: Service): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  ${string(serviceName(workspace))}
  <key>ProgramArguments</key>
  <array>
${command.map(word => `    ${string(word)}\n`).join('')}  </array>
  <key>EnvironmentVariables</key>
  <dict>
${Object.entries(env)
  .map(([name, value]) => `    <key>${escaped(name)}</key>\n    ${string(value)}\n`)
  .join('')}  </dict>
  <key>WorkingDirectory</key>
  ${string(workspace)}
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>20</integer>
</dict>
</plist>
`

const escaped = (text: string): string =>
  oneLineOnly(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const string = (text: string): string => `<string>${escaped(text)}</string>`

/** The workspace that a unit file of systemd serves. */
export const workspaceOfUnit = (text: string): string | undefined =>
  /^ExecStart=.*?"--workspace=((?:[^"\\]|\\.)*)"/m.exec(text)?.[1]?.replace(/\\(.)/g, '$1').replaceAll('%%', '%')

/** The workspace that a launch agent serves. */
export const workspaceOfPlist = (text: string): string | undefined =>
  /<string>--workspace=(.*?)<\/string>/
    .exec(text)?.[1]
    ?.replace(/&(lt|gt|amp);/g, (_, name: 'lt' | 'gt' | 'amp') => ENTITIES[name])

const ENTITIES = { lt: '<', gt: '>', amp: '&' } as const
