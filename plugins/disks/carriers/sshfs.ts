import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { needProgram } from '../../../sdk/node/programs/run.js'
import type { SshfsTarget } from '../contract.js'
import { bracketed } from '../entry.js'
import { lackingFuse, lackingProgram } from '../machine/lacking.js'
import type { DiskMounter } from './carrier.js'
import { startCarrier } from './carrier-program.js'

/** The name under which ssh looks up the pinned key, whatever the server is called. */
const ALIAS = 'share'

/** Mounts with sshfs, over the ssh of the machine. */
export const sshfsCarrier: DiskMounter = {
  via: 'sshfs',
  missing: async () => {
    const programs = ['sshfs', 'ssh', 'fusermount3']
    return (await Promise.all([...programs.map(lackingProgram), lackingFuse()])).flat()
  },
  start: async ({ entry, secrets, mountPoint, folder, address, hostKey, readOnly }) => {
    const { user, host, port = 22, path } = entry.config as SshfsTarget
    const files = { key: join(folder, 'key'), known: join(folder, 'known-hosts'), config: join(folder, 'ssh-config') }
    const byKey = secrets.privateKey !== undefined
    if (byKey) await writeFile(files.key, keyText(secrets.privateKey!), { mode: 0o600 })
    await writeFile(files.known, `${ALIAS} ${hostKey}\n`, { mode: 0o600 })
    const lines = [
      `HostName ${address}`,
      `HostKeyAlias ${ALIAS}`,
      'StrictHostKeyChecking yes',
      `UserKnownHostsFile "${files.known}"`,
      'GlobalKnownHostsFile /dev/null',
      'UpdateHostKeys no',
      ...(byKey
        ? [`IdentityFile "${files.key}"`, 'PreferredAuthentications publickey', 'BatchMode yes']
        : ['PreferredAuthentications password,keyboard-interactive', 'NumberOfPasswordPrompts 1']),
      'IdentitiesOnly yes',
      'IdentityAgent none',
      'ConnectTimeout 20',
      'ServerAliveInterval 15',
      'ServerAliveCountMax 3',
    ]
    await writeFile(files.config, lines.map(line => `${line}\n`).join(''), { mode: 0o600 })
    const options = [
      'nosuid',
      'nodev',
      `uid=${process.getuid?.() ?? 0}`,
      `gid=${process.getgid?.() ?? 0}`,
      `ssh_command=${await needProgram('ssh')}`,
      ...(readOnly ? ['ro'] : []),
      // With a password nobody could answer ssh a second time.
      byKey ? 'reconnect' : 'password_stdin',
    ]
    const server = [`${user}@${bracketed(host)}:${path}`, mountPoint, '-p', String(port), '-F', files.config]
    return startCarrier({
      program: 'sshfs',
      args: [...server, '-f', '-o', options.join(',')],
      folder,
      ...(!byKey && { input: `${secrets.password}\n` }),
    })
  },
}

/** A key as ssh reads it: with line ends of Unix, and one at its end. */
export const keyText = (key: string): string => `${key.replaceAll('\r\n', '\n').trimEnd()}\n`
