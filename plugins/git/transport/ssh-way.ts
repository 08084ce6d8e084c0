import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import { programNamed } from '../../../sdk/node/programs/installed-at.js'
import { answerPipe, type CredentialWay } from './credential-pipe.js'
import type { KnownHosts } from './known-hosts.js'
import type { ServerAddress } from './remote-address.js'
import type { RemoteFailure } from './remote-words.js'

const PROGRAMS = ['ssh', 'ssh-agent', 'ssh-add'] as const
const CONFIG = 'SANDBOX_GIT_SSH_CONFIG'
const KEY = 'SANDBOX_GIT_SSH_KEY'
const WITH_KEY = 'SANDBOX_GIT_SSH_RUN'
const KNOWN = 'known_hosts'

const BARE = `ssh -F "$${CONFIG}"`
/** An agent that lives as long as this ssh gets the key out of a pipe, so that no file ever holds it. */
const IN_AGENT = `ssh-agent sh -c "$${WITH_KEY}" sh`
const TAKE_KEY =
  `while IFS= read -r line && test "$line" != .; do printf '%s\\n' "$line"; done < "$${KEY}" | ssh-add -q - ||`
  + ' { echo "the stored key cannot be used: it is damaged, or protected by a passphrase" >&2; exit 255; };'
  + ` exec ${BARE} "$@"`

/** A value in the form of ssh_config(5): in quotes, and without the tokens that `%` begins. */
const quoted = (text: string): string => `"${text.replaceAll('%', '%%')}"`

/** The name under which the keys of a server are known. */
export const nameOfServer = ({ host, port }: Pick<ServerAddress, 'host' | 'port'>): string => `[${host}]:${port}`

/** Holds ssh to a checked address, to one key, and to host keys that were seen before. */
const configOf = (server: ServerAddress, address: string, folder: string, seen: boolean, keyed: boolean): string =>
  [
    'Host *',
    `HostName ${address}`,
    `HostKeyAlias ${nameOfServer(server)}`,
    `UserKnownHostsFile ${quoted(join(folder, KNOWN))}`,
    'GlobalKnownHostsFile /dev/null',
    `StrictHostKeyChecking ${seen ? 'yes' : 'accept-new'}`,
    'HashKnownHosts no',
    'UpdateHostKeys no',
    'CheckHostIP no',
    'CanonicalizeHostname no',
    'BatchMode yes',
    'PreferredAuthentications publickey',
    'IdentityFile none',
    ...(keyed ? [] : ['IdentityAgent none']),
    'ForwardAgent no',
    'ForwardX11 no',
    'ClearAllForwardings yes',
    'PermitLocalCommand no',
    'ProxyCommand none',
    'ControlMaster no',
    'ControlPath none',
    'ConnectTimeout 30',
    'ServerAliveInterval 15',
    'LogLevel ERROR',
    '',
  ].join('\n')

/**
 * Makes ssh ready for one server: with the private key that is stored for it, and its host key as it was first seen.
 *
 * @returns A failure where this machine has no ssh.
 */
export const sshWay = async (
  folder: string,
  server: ServerAddress,
  address: string,
  key: string | undefined,
  known: KnownHosts,
): Promise<CredentialWay | { readonly failure: RemoteFailure }> => {
  for (const program of PROGRAMS)
    if ((await programNamed(program)) === undefined)
      return { failure: { code: 'other', reason: `${program} is not installed: on Debian, openssh-client` } }
  const name = nameOfServer(server)
  const lines = known.linesOf(name)
  const [config, hosts, path] = ['ssh_config', KNOWN, 'key'].map(file => join(folder, file)) as [string, string, string]
  await writeFile(hosts, lines.map(line => `${line}\n`).join(''), { mode: 0o600 })
  await writeFile(config, configOf(server, address, folder, lines.length > 0, key !== undefined), { mode: 0o600 })
  const pipe = key === undefined ? undefined : await answerPipe(path, Buffer.from(`${key.trim()}\n.\n`))
  return {
    settings: [],
    env: {
      GIT_SSH_COMMAND: pipe ? IN_AGENT : BARE,
      GIT_SSH_VARIANT: 'ssh',
      [CONFIG]: config,
      ...(pipe && { [KEY]: path, [WITH_KEY]: TAKE_KEY, SSH_ASKPASS: 'false', SSH_ASKPASS_REQUIRE: 'force' }),
    },
    pin: async () => {
      if (lines.length === 0) await known.pin(name, readPlain(hosts) ?? '')
    },
    [Symbol.asyncDispose]: async () => pipe?.[Symbol.asyncDispose](),
  }
}
