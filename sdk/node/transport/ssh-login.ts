import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readPlain } from '../files/files.js'
import { programNamed } from '../programs/installed-at.js'
import { answerPipe } from './credential-pipe.js'
import type { KnownHosts } from './known-hosts.js'
import type { ServerAddress } from './remote-address.js'

/** What ssh signs in with. */
export interface SshSecret {
  readonly kind: 'key' | 'password'
  readonly value: string
}

/** How the daemon starts ssh for one server; no part of it contains the secret. */
export interface SshLogin extends AsyncDisposable {
  /** The start of a command for a shell, which the arguments of ssh follow. */
  readonly command: string
  readonly env: { readonly [name: string]: string }
  /** Keeps the host key that the server showed, if it was reached for the first time. */
  pin(): Promise<void>
}

/** The programs that are needed, and the package of Debian that has them. */
const PROGRAMS = ['ssh', 'ssh-agent', 'ssh-add'] as const
const CONFIG = 'SANDBOX_SSH_CONFIG'
const SECRET = 'SANDBOX_SSH_SECRET'
const WITH_KEY = 'SANDBOX_SSH_RUN'
const KNOWN = 'known_hosts'

const BARE = `ssh -F "$${CONFIG}"`
/** An agent that lives as long as this ssh gets the key out of a pipe, so that no file ever holds it. */
const IN_AGENT = `ssh-agent sh -c "$${WITH_KEY}" sh`
const TAKE_KEY =
  `while IFS= read -r line && test "$line" != .; do printf '%s\\n' "$line"; done < "$${SECRET}" | ssh-add -q - ||`
  + ' { echo "the stored key cannot be used: it is damaged, or protected by a passphrase" >&2; exit 255; };'
  + ` exec ${BARE} "$@"`
const ASKED = `#!/bin/sh\nIFS= read -r answer < "$${SECRET}" && printf '%s\\n' "$answer"\n`

/** A value in the form of ssh_config(5): in quotes, and without the tokens that `%` begins. */
export const quotedForSsh = (text: string): string => `"${text.replaceAll('%', '%%')}"`

/** The name under which the keys of a server are known. */
export const nameOfServer = ({ host, port }: Pick<ServerAddress, 'host' | 'port'>): string => `[${host}]:${port}`

/** Settings that hold ssh to the host keys in a file, and to one way to sign in. */
export const sshSettings = (
  server: Pick<ServerAddress, 'host' | 'port'>,
  knownHosts: string,
  how: SshSecret['kind'],
): string[] => [
  `HostKeyAlias ${nameOfServer(server)}`,
  `UserKnownHostsFile ${quotedForSsh(knownHosts)}`,
  'GlobalKnownHostsFile /dev/null',
  'HashKnownHosts no',
  'UpdateHostKeys no',
  'CheckHostIP no',
  'CanonicalizeHostname no',
  ...(how === 'key'
    ? ['BatchMode yes', 'PreferredAuthentications publickey']
    : ['PreferredAuthentications password,keyboard-interactive', 'NumberOfPasswordPrompts 1']),
  'IdentityFile none',
  'ForwardAgent no',
  'ForwardX11 no',
  'PermitLocalCommand no',
  'ControlMaster no',
  'ControlPath none',
  'ServerAliveInterval 15',
  'LogLevel ERROR',
]

/** Holds the daemon's ssh to a checked address, and to host keys that were seen before. */
const configOf = (
  server: ServerAddress,
  address: string,
  hosts: string,
  seen: boolean,
  secret: SshSecret | undefined,
): string =>
  [
    'Host *',
    `HostName ${address}`,
    ...sshSettings(server, hosts, secret?.kind ?? 'key'),
    `StrictHostKeyChecking ${seen ? 'yes' : 'accept-new'}`,
    ...(secret?.kind === 'key' ? [] : ['IdentityAgent none']),
    'ClearAllForwardings yes',
    'ProxyCommand none',
    'ConnectTimeout 30',
    '',
  ].join('\n')

/** The name of a program of ssh that this machine lacks; undefined: it has all. */
export const missingSshProgram = async (): Promise<string | undefined> => {
  for (const program of PROGRAMS) if ((await programNamed(program)) === undefined) return program
  return undefined
}

/** Says how to install a program of ssh. */
export const missingSshSentence = (program: string): string => `${program} is not installed: on Debian, openssh-client`

/** Makes ssh ready for one server: with a secret, and the server's host key as it was first seen. */
export const sshLogin = async (
  folder: string,
  server: ServerAddress,
  address: string,
  secret: SshSecret | undefined,
  known: KnownHosts,
): Promise<SshLogin> => {
  const name = nameOfServer(server)
  const lines = known.linesOf(name)
  const at = (file: string) => join(folder, file)
  const [config, hosts, path, asked] = [at('ssh_config'), at(KNOWN), at('secret'), at('askpass')]
  await writeFile(hosts, lines.map(line => `${line}\n`).join(''), { mode: 0o600 })
  await writeFile(config, configOf(server, address, hosts, lines.length > 0, secret), { mode: 0o600 })
  if (secret?.kind === 'password') await writeFile(asked, ASKED, { mode: 0o700 })
  const answer = secret?.kind === 'key' ? `${secret.value.trim()}\n.\n` : `${secret?.value ?? ''}\n`
  const pipe = secret && (await answerPipe(path, Buffer.from(answer)))
  return {
    command: secret?.kind === 'key' ? IN_AGENT : BARE,
    env: {
      [CONFIG]: config,
      ...(pipe && { [SECRET]: path, SSH_ASKPASS: 'false', SSH_ASKPASS_REQUIRE: 'force' }),
      ...(secret?.kind === 'key' && { [WITH_KEY]: TAKE_KEY }),
      ...(secret?.kind === 'password' && { SSH_ASKPASS: asked }),
    },
    pin: async () => {
      if (lines.length === 0) await known.pin(name, readPlain(hosts) ?? '')
    },
    [Symbol.asyncDispose]: async () => pipe?.[Symbol.asyncDispose](),
  }
}
